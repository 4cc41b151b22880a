// The order of the data, and how a run moves on in it.
#include "training/run/data_order.h"

#include <algorithm>

#include "tensor/random.h"

namespace bertrand::training {

EpochOrder::EpochOrder(const Settings& settings, std::int64_t epoch, std::int64_t examples)
    : shuffled_(settings.shuffle),
      permutation_(static_cast<std::uint64_t>(examples),
                   mix(mix(settings.seed, hash_name("order of examples")), static_cast<std::uint64_t>(epoch))) {}

/// An objective may have to draw the examples of an epoch to count them. So those of the epoch at hand are not counted
/// again.
std::int64_t DataOrder::examples(std::int64_t epoch) const {
  return epoch == ordered_epoch_ ? count_ : objective_.examples(epoch);
}

StepExamples DataOrder::at(const Position& position) {
  count_ = examples(position.epoch);
  ordered_epoch_ = position.epoch;  // for speed alone: else they are counted again
  const EpochOrder order(settings_, position.epoch, count_);
  const std::int64_t steps = (count_ + settings_.batch_size - 1) / settings_.batch_size;
  if (position.step >= steps)
    fail(Failure::model, "checkpoint: step_in_epoch: expected less than the {} steps of epoch {}, got {}", steps,
         position.epoch, position.step);
  const std::int64_t first = position.step * settings_.batch_size;
  const std::int64_t last = std::min(count_, first + settings_.batch_size);
  StepExamples step{.epoch = position.epoch, .numbers = {}, .epochs_after = epochs(after(position))};
  for (std::int64_t i = first; i < last; ++i) step.numbers.push_back(order[i]);
  return step;
}

Position DataOrder::after(const Position& position) const {
  const bool epoch_ended = (position.step + 1) * settings_.batch_size >= examples(position.epoch);
  return epoch_ended ? Position{position.epoch + 1, 0} : Position{position.epoch, position.step + 1};
}

double DataOrder::epochs(const Position& position) const {
  // The next epoch need not be drawn: for speed alone.
  if (position.step == 0) return static_cast<double>(position.epoch);
  const std::int64_t batch = settings_.batch_size, steps = (examples(position.epoch) + batch - 1) / batch;
  return static_cast<double>(position.epoch) + static_cast<double>(position.step) / static_cast<double>(steps);
}

}  // namespace bertrand::training
