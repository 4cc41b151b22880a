// One optimizer step: the gradients of its micro-batches, their sum, and the update.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autograd/engine.h"
#include "distributed/gradient_sum.h"
#include "distributed/replica.h"
#include "optim/optimizer.h"
#include "training/step/objective.h"

namespace bertrand::training {

struct StepResult {
  Metrics losses;  ///< "loss", then its parts by other names
  double grad_norm = 0;
  optim::LossScale::State loss_scale;  ///< after the step
};

/// A step that the device was asked for, and may not have computed yet.
struct StartedStep {
  StepExamples examples;
  std::int64_t number = 0;  ///< from 1
  std::int64_t tokens = 0;
  double learning_rate = 0;
  std::uint64_t key = 0;                        ///< of its dropout
  std::chrono::steady_clock::time_point begin;  ///< when the host began to ask for it
  std::function<void(void*)> losses, report;    ///< wait for what is on its way from the device
  Tensor gradients;                             ///< flat, the sum of all micro-batches, if it was to be kept
};

/// Examples whose gradient is computed at once, if nobody says how many.
inline constexpr std::int64_t kUsualMicroBatch = 32;

class Stepper {
 public:
  struct Options {
    std::uint64_t seed = 42;
    std::int64_t micro_batch_size = kUsualMicroBatch;
    int recompute_activations = 0;  ///< of every so many parts of the model (autograd/recompute.h); 0: none
  };
  /// What this replica trains. All of it must outlive the Stepper.
  struct Parts {
    Objective& objective;
    nn::ParameterSet& parameters;
    optim::Optimizer& optimizer;
    const distributed::Replica& self;
  };
  Stepper(const Parts& parts, const Options& options)
      : parts_(parts), options_(options), gradient_sum_(parts.self.collective()) {}

  /// Asks the device for update number `step` (from 1) with these examples, of which this replica computes its share.
  /// It does not wait for the device: the next step may be started before this one is finished, so that the device
  /// never waits for the host. `keep_gradients`: they are looked at before the next step is started.
  StartedStep start(const StepExamples& examples, std::int64_t step, double learning_rate, bool keep_gradients = false);
  /// Waits for a step that was started; call it once for each, in their order. The result is the same on all
  /// replicas, but for the parts of the loss: a replica that never had a micro-batch does not know their names. Throws
  /// Error(Failure::numerics) with step, op and tensor if the loss or a gradient is not finite and no loss scale
  /// explains it. Then neither that step nor those started since have changed a parameter.
  StepResult finish(const StartedStep& step);
  /// Names the step after the one that is started next, so that its examples are read while that one is computed.
  void read_ahead(const StepExamples& examples);

 private:
  /// What a step adds up over all its micro-batches and replicas.
  struct Sums {
    Tensor gradients;  ///< flat
    Tensor losses;     ///< the parts of the loss, f64 [kMostLosses]
  };
  Sums forward_and_backward(std::int64_t examples, std::uint64_t key);
  /// Makes the gradients of the parameters those of one micro-batch. Returns the parts of its loss, f64
  /// [kMostLosses].
  Tensor run_micro_batch(const distributed::Share& examples, std::uint64_t key);
  std::int64_t micro_batches(std::int64_t examples) const;
  /// The examples of a step that this replica computes.
  distributed::Share my_examples(std::int64_t examples) const;
  /// "loss", the sum of the parts, and then the parts that have other names.
  Metrics named(std::span<const double> parts) const;
  /// Computes the step again to find the op that made the first number that is not finite. Throws with its name.
  [[noreturn]] void explain(const StartedStep& step, double loss, const optim::Optimizer::Report& report);

  const Parts parts_;
  const Options options_;
  distributed::GradientSum gradient_sum_;
  std::vector<std::string> loss_names_;  // of the parts of the loss; known when this replica has computed a micro-batch
};

}  // namespace bertrand::training
