// One optimizer step: the gradients of its micro-batches, their sum, and the update.
#pragma once
#include <cstdint>

#include "apps/training/accumulator.h"
#include "apps/training/objective.h"
#include "optim/optimizer.h"

namespace bertrand::training {

struct StepResult {
  Metrics losses;  ///< "loss", then its parts where there are several
  double grad_norm = 0;
  std::int64_t examples = 0, tokens = 0;
};

class Stepper {
 public:
  struct Options {
    std::uint64_t seed = 42;
    std::int64_t micro_batch_size = 32;
  };
  Stepper(Objective& objective, nn::ParameterSet& parameters, optim::Optimizer& optimizer, const Options& options);

  /// Makes update number `step` (from 1) with these examples. Where the loss or a gradient is not finite nothing is
  /// updated and Error(Failure::numerics) names step, op and tensor.
  StepResult run(const StepExamples& examples, std::int64_t step, double learning_rate);

 private:
  /// The losses of every micro-batch; their gradients are summed up in the parameters' own.
  Metrics forward_and_backward(std::int64_t examples, std::uint64_t key);
  /// Finds the op that made the first number that is not finite, by running the step again; throws.
  [[noreturn]] void explain(std::int64_t examples, std::int64_t step, std::uint64_t key, const std::string& found);

  Objective& objective_;
  nn::ParameterSet& parameters_;
  optim::Optimizer& optimizer_;
  const Options options_;
  GradientAccumulator accumulator_;
};

}  // namespace bertrand::training
