#include "apps/training/step.h"

#include <algorithm>
#include <cmath>

#include "tensor/random.h"

namespace bertrand::training {

namespace {

/// Losses travel between replicas in tensors of this size: one without a micro-batch does not know how many there are.
constexpr std::size_t kMostLosses = 8;

}  // namespace

std::int64_t Stepper::micro_batches(std::int64_t examples) const {
  return (examples + options_.micro_batch_size - 1) / options_.micro_batch_size;
}

Tensor Stepper::run_micro_batch(const distributed::Share& examples, std::uint64_t key) {
  std::vector<double> losses(kMostLosses);
  std::vector<LossPart> loss_parts = parts_.objective.loss(examples.first, examples.count, key);
  check(loss_parts.size() <= kMostLosses, "step: the loss has {} parts, at most {} fit", loss_parts.size(),
        kMostLosses);
  loss_names_.clear();
  parts_.parameters.zero_gradients();
  Variable loss;
  for (LossPart& part : loss_parts) {
    losses[loss_names_.size()] = ops::item(part.value.value());
    loss_names_.push_back(std::move(part.name));
    loss = loss ? add(loss, part.value) : std::move(part.value);
  }
  loss_parts.clear();
  backward(loss, parts_.optimizer.loss_scale().gradient_of_loss());
  parts_.parameters.complete_gradients();
  return ops::from_host(losses, {kMostLosses}, parts_.self.backend());
}

std::vector<distributed::Addend> Stepper::run_micro_batches(std::int64_t examples, std::uint64_t key,
                                                            std::vector<distributed::Addend>& losses) {
  const std::int64_t count = micro_batches(examples), size = options_.micro_batch_size;
  const distributed::Share mine = distributed::share_of(count, parts_.self.rank(), parts_.self.size());
  const Tensor& gradients = parts_.parameters.gradients();
  accumulator_.begin(mine.first, count);
  for (std::int64_t i = mine.first; i < mine.end(); ++i) {
    const distributed::Share batch{.first = i * size, .count = std::min(size, examples - i * size)};
    losses.push_back({.first = i, .count = 1, .values = run_micro_batch(batch, key)});
    if (i + 1 < mine.end()) accumulator_.add(gradients);
  }
  if (mine.count == 0) return {};
  return accumulator_.finish(gradients);
}

Metrics Stepper::total_losses(std::span<const distributed::Addend> losses, std::int64_t micro_batches) {
  const Tensor sums = ops::full({kMostLosses}, 0, DType::f64, parts_.self.backend());
  parts_.self.collective().all_reduce_sum(losses, micro_batches, sums);
  const std::vector<double> values = ops::to_host<double>(sums);
  Metrics total{{"loss", 0}};
  for (const double value : values) total[0].value += value;
  for (std::size_t i = 0; i < loss_names_.size() && loss_names_.size() > 1; ++i)
    total.push_back({loss_names_[i], values[i]});
  return total;
}

Metrics Stepper::forward_and_backward(std::int64_t examples, std::uint64_t key) {
  std::vector<distributed::Addend> losses;
  const std::vector<distributed::Addend> gradients = run_micro_batches(examples, key, losses);
  gradients_ = gradients.empty() ? accumulator_.place_of_sum(parts_.parameters.gradients()) : gradients.back().values;
  parts_.self.collective().all_reduce_sum(gradients, micro_batches(examples), gradients_);
  return total_losses(losses, micro_batches(examples));
}

distributed::Share Stepper::my_examples(std::int64_t examples) const {
  const std::int64_t size = options_.micro_batch_size;
  const distributed::Share mine = distributed::share_of(micro_batches(examples), parts_.self.rank(), parts_.self.size());
  const std::int64_t first = std::min(examples, mine.first * size);
  return {.first = first, .count = std::min(examples, mine.end() * size) - first};
}

void Stepper::read_ahead(const StepExamples& examples) {
  parts_.objective.read_ahead(examples, my_examples(static_cast<std::int64_t>(examples.numbers.size())));
}

StepResult Stepper::run(const StepExamples& examples, std::int64_t step, double learning_rate) {
  const auto count = static_cast<std::int64_t>(examples.numbers.size());
  const std::uint64_t key = mix(mix(options_.seed, hash_name("dropout")), static_cast<std::uint64_t>(step));
  StepResult result{.examples = count, .tokens = parts_.objective.begin_step(examples, my_examples(count))};
  result.losses = forward_and_backward(count, key);
  // With a loss scale, what follows from too large a scale is the optimizer's to see: the step is skipped.
  if (!std::isfinite(result.losses[0].value) && !parts_.optimizer.loss_scale())
    explain(count, step, key, fmt::format("loss: expected a finite number, got {}", result.losses[0].value));
  try {
    result.grad_norm = parts_.optimizer.step(learning_rate, gradients_);
    gradients_ = {};
  } catch (const Error& error) {
    if (error.failure() != Failure::numerics) throw;
    explain(count, step, key, error.what());
  }
  return result;
}

void Stepper::explain(std::int64_t examples, std::int64_t step, std::uint64_t key, const std::string& found) {
  try {
    const CheckFinite check_every_op;
    forward_and_backward(examples, key);
  } catch (const Error& error) {
    if (error.failure() != Failure::numerics) throw;
    fail(Failure::numerics, "step {}: {}", step, error.what());
  }
  fail(Failure::numerics, "step {}: {}", step, found);  // only the sum over micro-batches overflowed
}

}  // namespace bertrand::training
