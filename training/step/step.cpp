#include "training/step/step.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/check_finite.h"
#include "tensor/random.h"

namespace bertrand::training {

namespace {

/// Losses travel between replicas in tensors of this size: one without a micro-batch does not know how many there are.
constexpr std::size_t kMostLosses = 8;

}  // namespace

std::int64_t Stepper::micro_batches(std::int64_t examples) const {
  return (examples + options_.micro_batch_size - 1) / options_.micro_batch_size;
}

Tensor Stepper::run_micro_batch(const distributed::Share& examples, std::uint64_t key, const LeafDone& leaf_done) {
  const Tensor losses = ops::full({kMostLosses}, 0, DType::f64, parts_.self.backend());
  std::vector<LossPart> loss_parts = parts_.objective.loss(examples.first, examples.count, key);
  check(loss_parts.size() <= kMostLosses, "step: the loss has {} parts, at most {} fit", loss_parts.size(),
        kMostLosses);
  loss_names_.clear();
  parts_.parameters.zero_gradients();
  Variable loss;
  for (LossPart& part : loss_parts) {
    const auto at = static_cast<Dim>(loss_names_.size());
    ops::copy_into(part.value.value(), losses.rows(at, at + 1));
    loss_names_.push_back(std::move(part.name));
    loss = loss ? add(loss, part.value) : std::move(part.value);
  }
  loss_parts.clear();
  backward(loss, parts_.optimizer.loss_scale().gradient_of_loss(), leaf_done);
  parts_.parameters.complete_gradients();
  return losses;
}

std::vector<distributed::Addend> Stepper::run_micro_batches(std::int64_t examples, std::uint64_t key) {
  const std::int64_t count = micro_batches(examples), size = options_.micro_batch_size;
  const distributed::Share mine = distributed::share_of(count, parts_.self.rank(), parts_.self.size());
  const Tensor& gradients = parts_.parameters.gradients();
  const LeafDone leaf_done = [&](const GradientSlot& leaf) {
    if (leaf.written) reducer_.ready(leaf.buffer);
  };
  std::vector<distributed::Addend> losses;
  accumulator_.begin(mine.first, count);
  if (mine.count == 0) begin_sum({.parts = count, .sum = accumulator_.place_of_sum(gradients)});
  for (std::int64_t i = mine.first; i < mine.end(); ++i) {
    const distributed::Share batch{.first = i * size, .count = std::min(size, examples - i * size)};
    const bool last = i + 1 == mine.end();
    if (last) {
      std::vector<distributed::Addend> addends = accumulator_.last(gradients);
      const Tensor sum = addends.back().values;
      begin_sum({.parts = count, .addends = std::move(addends), .sum = sum, .last = gradients});
    }
    losses.push_back({.first = i, .count = 1, .values = run_micro_batch(batch, key, last ? leaf_done : LeafDone{})});
    if (!last) accumulator_.add(gradients);
  }
  return losses;
}

void Stepper::begin_sum(distributed::Reducer::Step sum) {
  gradients_ = sum.sum;
  reducer_.begin(std::move(sum));
}

Tensor Stepper::forward_and_backward(std::int64_t examples, std::uint64_t key) {
  const std::vector<distributed::Addend> losses = run_micro_batches(examples, key);
  reducer_.finish();
  const Tensor parts = ops::full({kMostLosses}, 0, DType::f64, parts_.self.backend());
  parts_.self.collective().all_reduce_sum(losses, micro_batches(examples), parts);
  return parts;
}

distributed::Share Stepper::my_examples(std::int64_t examples) const {
  const std::int64_t size = options_.micro_batch_size;
  const distributed::Share mine =
      distributed::share_of(micro_batches(examples), parts_.self.rank(), parts_.self.size());
  const std::int64_t first = std::min(examples, mine.first * size);
  return {.first = first, .count = std::min(examples, mine.end() * size) - first};
}

void Stepper::read_ahead(const StepExamples& examples) {
  parts_.objective.read_ahead(examples, my_examples(static_cast<std::int64_t>(examples.numbers.size())));
}

StartedStep Stepper::start(const StepExamples& examples, std::int64_t step, double learning_rate) {
  const auto begin = std::chrono::steady_clock::now();
  const auto count = static_cast<std::int64_t>(examples.numbers.size());
  StartedStep started{.examples = examples,
                      .number = step,
                      .tokens = parts_.objective.begin_step(examples, my_examples(count)),
                      .key = mix(mix(options_.seed, hash_name("dropout")), static_cast<std::uint64_t>(step)),
                      .learning_rate = learning_rate,
                      .begin = begin};
  const Tensor losses = forward_and_backward(count, started.key);
  const Tensor report = parts_.optimizer.update(learning_rate, gradients_, losses);
  gradients_ = {};
  started.losses = parts_.self.backend().download_later(losses);
  started.report = parts_.self.backend().download_later(report);
  return started;
}

StepResult Stepper::finish(const StartedStep& step) {
  std::array<double, kMostLosses> losses{};
  std::array<double, 4> numbers{};
  step.losses(losses.data());
  step.report(numbers.data());
  const optim::Optimizer::Report report = parts_.optimizer.read(numbers);
  StepResult result{.losses = named(losses), .grad_norm = report.gradient_norm, .loss_scale = report.loss_scale};
  if (report.ended) explain(step, result.losses[0].value, report);
  return result;
}

Metrics Stepper::named(std::span<const double> parts) const {
  Metrics losses{{"loss", 0}};
  for (const double part : parts) losses[0].value += part;
  for (std::size_t i = 0; i < loss_names_.size() && loss_names_.size() > 1; ++i)
    losses.push_back({loss_names_[i], parts[i]});
  return losses;
}

void Stepper::explain(const StartedStep& step, double loss, const optim::Optimizer::Report& report) {
  try {
    const auto count = static_cast<std::int64_t>(step.examples.numbers.size());
    parts_.objective.begin_step(step.examples, my_examples(count));
    {
      const CheckFinite check_every_op;
      forward_and_backward(count, step.key);
    }
    // Only the sum over micro-batches overflowed.
    if (!std::isfinite(loss)) fail(Failure::numerics, "loss: expected a finite number, got {}", loss);
    parts_.optimizer.refuse(report, gradients_);
  } catch (const Error& error) {
    if (error.failure() != Failure::numerics) throw;
    fail(Failure::numerics, "step {}: {}", step.number, error.what());
  }
}

}  // namespace bertrand::training
