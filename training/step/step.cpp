// A step from its micro-batches to the update: first what one replica computes, then what all of them sum and decide.
#include "training/step/step.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/check_finite.h"
#include "autograd/recompute.h"
#include "tensor/random.h"

namespace bertrand::training {

namespace {

/// Every replica adds this many parts of a loss to the sum over replicas; those that the loss does not have are zero.
/// All replicas must bring tensors of one size, and one that has no micro-batch in a step never sees how many parts the
/// loss has.
constexpr std::size_t kMostLosses = 8;

}  // namespace

std::int64_t Stepper::micro_batches(std::int64_t examples) const {
  return (examples + options_.micro_batch_size - 1) / options_.micro_batch_size;
}

Tensor Stepper::run_micro_batch(const distributed::Share& examples, std::uint64_t key) {
  const Tensor losses = ops::full({kMostLosses}, 0, DType::f64, parts_.self.backend());
  std::vector<LossPart> loss_parts;
  {
    const Recomputing guard(options_.recompute_activations);
    loss_parts = parts_.objective.loss(examples.first, examples.count, key);
  }
  check(loss_parts.size() <= kMostLosses, "step: expected a loss of at most {} parts, got {}", kMostLosses,
        loss_parts.size());
  loss_names_.clear();
  parts_.parameters.zero_gradients();
  Variable loss;
  for (LossPart& part : loss_parts) {
    check(part.name != "loss" || loss_parts.size() == 1,
          "step: expected no part named \"loss\" beside others, whose sum is the loss, got {} parts",
          loss_parts.size());
    const auto at = static_cast<Dim>(loss_names_.size());
    ops::copy_into(part.value.value(), losses.rows(at, at + 1));
    loss_names_.push_back(std::move(part.name));
    loss = loss ? add(loss, part.value) : std::move(part.value);
  }
  backward(loss, parts_.optimizer.loss_scale().gradient_of_loss(), [&](const GradientSlot& parameter) {
    if (parameter.written) gradient_sum_.ready(parameter.buffer);  // for speed alone: sums begin early
  });
  parts_.parameters.complete_gradients();
  return losses;
}

Stepper::Sums Stepper::forward_and_backward(std::int64_t examples, std::uint64_t key) {
  const std::int64_t count = micro_batches(examples), size = options_.micro_batch_size;
  const distributed::Share mine = distributed::share_of(count, parts_.self.rank(), parts_.self.size());
  std::vector<distributed::Addend> losses;
  gradient_sum_.begin(parts_.parameters.gradients(), mine, count);
  for (std::int64_t i = mine.first; i < mine.end(); ++i) {
    const distributed::Share micro_batch{.first = i * size, .count = std::min(size, examples - i * size)};
    losses.push_back({.first = i, .count = 1, .values = run_micro_batch(micro_batch, key)});
    gradient_sum_.add();
  }
  const Sums sums{.gradients = gradient_sum_.finish(),
                  .losses = Tensor({kMostLosses}, DType::f64, parts_.self.backend())};
  parts_.self.collective().all_reduce_sum(losses, count, sums.losses);
  return sums;
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

StartedStep Stepper::start(const StepExamples& examples, std::int64_t step, double learning_rate, bool keep_gradients) {
  const auto count = static_cast<std::int64_t>(examples.numbers.size());
  StartedStep started{.examples = examples,
                      .number = step,
                      .learning_rate = learning_rate,
                      .key = mix(mix(options_.seed, hash_name("dropout")), static_cast<std::uint64_t>(step)),
                      .begin = std::chrono::steady_clock::now()};
  started.tokens = parts_.objective.begin_step(examples, my_examples(count));
  const Sums sums = forward_and_backward(count, started.key);
  const Tensor report = parts_.optimizer.update(learning_rate, sums.gradients, sums.losses);
  started.losses = parts_.self.backend().download_later(sums.losses);
  started.report = parts_.self.backend().download_later(report);
  if (keep_gradients) started.gradients = sums.gradients;
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
  for (std::size_t i = 0; i < loss_names_.size(); ++i)
    if (loss_names_[i] != "loss") losses.push_back({loss_names_[i], parts[i]});
  return losses;
}

void Stepper::explain(const StartedStep& step, double loss, const optim::Optimizer::Report& report) {
  try {
    const auto count = static_cast<std::int64_t>(step.examples.numbers.size());
    parts_.objective.begin_step(step.examples, my_examples(count));
    const Sums sums = [&] {
      const CheckFinite check_every_op;
      return forward_and_backward(count, step.key);
    }();
    // Every op made finite numbers, so only a sum over micro-batches is not finite.
    if (!std::isfinite(loss)) fail(Failure::numerics, "loss: expected a finite number, got {}", loss);
    parts_.optimizer.refuse(report, sums.gradients);
  } catch (const Error& error) {
    if (error.failure() != Failure::numerics) throw;
    fail(Failure::numerics, "step {}: {}", step.number, error.what());
  }
}

}  // namespace bertrand::training
