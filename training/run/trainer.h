// The training run that pretrain and finetune share: plan, steps, logs, evaluation, saving, resuming.
//
//   Settings settings = finetuning_defaults();          // settings.h: add_common_flags, parse, complete
//   auto directory = claim_output(settings, {…});         // run_directory.h: before input is read
//   auto group = open_replicas(settings, nullptr);          // device.h
//   const Conditions conditions = agree_on_run(nullptr, settings, {.settings = …, .inputs = …});
//   group.run([&](const distributed::Replica& self) {
//     MyObjective objective(…, self);                     // objective.h
//     Trainer trainer({settings, objective, self, directory.get(), "finetune", conditions});
//     if (!trainer.announce()) return;                    // prints the plan; false: --plan, nothing more to do
//     trainer.begin([&](nn::ParameterSet& p) { load… });  // memory, initial values or the newest checkpoint
//     trainer.run();
//   });
#pragma once
#include <functional>
#include <memory>

#include "training/run/devices.h"
#include "training/run/plan.h"
#include "training/run/run_directory.h"
#include "training/run/run_identity.h"
#include "training/run/settings.h"
#include "training/step/objective.h"

namespace bertrand::distributed {
class Collective;
class Replica;
}  // namespace bertrand::distributed

namespace bertrand::training {

/// One replica's part of a run. All replicas make the same calls; the first one plans, prints and writes the files.
class Trainer {
 public:
  struct Job {
    const Settings& settings;
    Objective& objective;
    const distributed::Replica& self;
    RunDirectory* directory = nullptr;  ///< of settings.output, claimed; null under --plan; for the first replica only
    std::string program;                ///< pretrain or finetune
    Conditions conditions;              ///< as agreed on
  };
  explicit Trainer(Job job);
  ~Trainer();

  /// Makes the plan and prints it. False under --plan: then there is nothing more to do.
  bool announce();

  /// Gives the parameters memory and removes a run that is to be overwritten. `initialize` loads what the run starts
  /// from (empty: all parameters stay as drawn from the seed); it is called on the first replica only, and not when a
  /// checkpoint is resumed. All replicas begin with the first one's values.
  void begin(const std::function<void(nn::ParameterSet&)>& initialize);

  /// Trains to the end; the final (or best) model and eval_results are in the output directory then. Throws
  /// Error(Failure::interrupted) after saving on a signal of signals.h, Error(Failure::numerics) naming step, op and
  /// tensor where a loss or gradient, or a weight to be saved, is not finite.
  void run();

  /// What all replicas do together after run(). A failure of another one is told as run() tells it, with `what` in the
  /// place of the step.
  void afterwards(const std::string& what, const std::function<void()>& work);

  nn::ParameterSet& parameters() { return *parameters_; }

 private:
  class Run;
  Job job_;
  Plan plan_;
  std::unique_ptr<nn::ParameterSet> parameters_;
  std::unique_ptr<Run> run_;
};

}  // namespace bertrand::training
