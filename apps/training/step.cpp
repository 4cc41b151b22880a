#include "apps/training/step.h"

#include <algorithm>
#include <cmath>

#include "tensor/random.h"

namespace bertrand::training {

namespace {

/// The sums over micro-batches of each part, behind their total under the name "loss".
Metrics total_losses(const std::vector<Metrics>& micro_batches) {
  Metrics losses{{"loss", 0}};
  for (std::size_t part = 0; part < micro_batches.at(0).size(); ++part) {
    std::vector<double> values;
    for (const Metrics& losses_of_one : micro_batches) values.push_back(losses_of_one[part].value);
    const double sum = pairwise_sum(values);
    losses[0].value += sum;
    if (micro_batches[0].size() > 1) losses.push_back({micro_batches[0][part].name, sum});
  }
  return losses;
}

}  // namespace

Stepper::Stepper(Objective& objective, nn::ParameterSet& parameters, optim::Optimizer& optimizer,
                 const Options& options)
    : objective_(objective), parameters_(parameters), optimizer_(optimizer), options_(options) {}

Metrics Stepper::forward_and_backward(std::int64_t examples, std::uint64_t key) {
  std::vector<Metrics> losses;
  for (std::int64_t first = 0; first < examples; first += options_.micro_batch_size) {
    const std::int64_t count = std::min(options_.micro_batch_size, examples - first);
    parameters_.zero_gradients();
    Metrics& parts = losses.emplace_back();
    Variable loss;
    for (LossPart& part : objective_.loss(first, count, key)) {
      parts.push_back({std::move(part.name), ops::item(part.value.value())});
      loss = loss ? add(loss, part.value) : std::move(part.value);
    }
    backward(loss);
    loss = {};
    parameters_.complete_gradients();
    if (first + count < examples)
      accumulator_.add(parameters_.gradients());
    else
      accumulator_.finish(parameters_.gradients());
  }
  return total_losses(losses);
}

StepResult Stepper::run(const StepExamples& examples, std::int64_t step, double learning_rate) {
  const auto count = static_cast<std::int64_t>(examples.numbers.size());
  const std::uint64_t key = mix(mix(options_.seed, hash_name("dropout")), static_cast<std::uint64_t>(step));
  StepResult result{.examples = count, .tokens = objective_.begin_step(examples)};
  result.losses = forward_and_backward(count, key);
  if (!std::isfinite(result.losses[0].value))
    explain(count, step, key, fmt::format("loss: expected a finite number, got {}", result.losses[0].value));
  try {
    result.grad_norm = optimizer_.step(learning_rate);
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
