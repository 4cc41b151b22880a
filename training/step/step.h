// One optimizer step: the gradients of its micro-batches, their sum, and the update.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>

#include "autograd/engine.h"
#include "distributed/reducer.h"
#include "distributed/replica.h"
#include "optim/optimizer.h"
#include "training/step/accumulator.h"
#include "training/step/objective.h"

namespace bertrand::training {

struct StepResult {
  Metrics losses;  ///< "loss", then its parts where there are several
  double grad_norm = 0;
  optim::LossScale::State loss_scale;  ///< after the step
};

/// A step that was asked for, and may not be computed yet.
struct StartedStep {
  StepExamples examples;
  std::int64_t number = 0, tokens = 0;
  std::uint64_t key = 0;
  double learning_rate = 0;
  std::chrono::steady_clock::time_point begin;    ///< when the host began to ask for it
  std::function<void(void*host)> losses, report;  ///< on their way from the device
};

class Stepper {
 public:
  struct Options {
    std::uint64_t seed = 42;
    std::int64_t micro_batch_size = 32;
  };
  /// What this replica trains.
  struct Parts {
    Objective& objective;
    nn::ParameterSet& parameters;
    optim::Optimizer& optimizer;
    const distributed::Replica& self;
  };
  Stepper(const Parts& parts, const Options& options)
      : parts_(parts), options_(options), reducer_(parts.self.collective()) {}

  /// Asks the device for update number `step` (from 1) with these examples, of which this replica computes its share.
  /// Does not wait for the device, so that it never waits for the host: the next step may be started before this one is
  /// finished.
  StartedStep start(const StepExamples& examples, std::int64_t step, double learning_rate);
  /// Waits for a step; of every step once, in their order. The result is the same on every replica. Where the loss or a
  /// gradient is not finite, and no loss scale explains it, Error(Failure::numerics) names step, op and tensor; neither
  /// that step nor those started since have changed a parameter.
  StepResult finish(const StartedStep& step);
  /// Names the step after the one that is run next, so that its examples are read while that one is computed.
  void read_ahead(const StepExamples& examples);

 private:
  /// The parts of the step's loss, f64 [kMostLosses] on the device; its gradients are in gradients_ then.
  Tensor forward_and_backward(std::int64_t examples, std::uint64_t key);
  /// Computes this replica's share of the micro-batches and returns the losses of each; their gradients are the
  /// reducer's, which sums those that are final while the last backward computes the others.
  std::vector<distributed::Addend> run_micro_batches(std::int64_t examples, std::uint64_t key);
  /// The losses of one micro-batch on the device, its gradients in the parameters' own.
  Tensor run_micro_batch(const distributed::Share& examples, std::uint64_t key, const LeafDone& leaf_done);
  void begin_sum(distributed::Reducer::Step sum);
  std::int64_t micro_batches(std::int64_t examples) const;
  /// Those of a step that this replica computes.
  distributed::Share my_examples(std::int64_t examples) const;
  /// "loss", the sum of its parts, and then these where there are several.
  Metrics named(std::span<const double> parts) const;
  /// Finds the op that made the first number that is not finite, by computing the step again; throws.
  [[noreturn]] void explain(const StartedStep& step, double loss, const optim::Optimizer::Report& report);

  const Parts parts_;
  const Options options_;
  GradientAccumulator accumulator_;
  distributed::Reducer reducer_;
  Tensor gradients_;                     // of the whole step, until they are used
  std::vector<std::string> loss_names_;  // of the parts, once this replica has computed a micro-batch
};

}  // namespace bertrand::training
