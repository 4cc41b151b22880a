// The loop of a training run on one replica: steps, evaluations, saves, and how they end.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "training/run/data_order.h"
#include "training/run/plan.h"
#include "training/run/run_directory.h"
#include "training/run/run_log.h"
#include "training/run/run_state.h"
#include "training/run/save_and_resume.h"
#include "training/run/trained_model.h"

namespace bertrand::training {

/// All replicas make the same calls. The first one prints and writes the files.
class Trainer {
 public:
  struct Job {
    const Settings& settings;
    const Plan& plan;
    const Conditions& conditions;  ///< as agreed on
    TrainedModel& model;
    const distributed::Replica& self;
    RunDirectory* directory = nullptr;  ///< of settings.output, claimed; for the first replica only
    const std::string& program;         ///< pretrain or finetune
  };
  explicit Trainer(const Job& job);

  /// Finds where the run begins: at the newest checkpoint under --resume, else at step 1, with what `initialize` loads
  /// (empty: all parameters stay as drawn from the seed) and the moments of the run or checkpoint in `moments` (empty:
  /// moments are 0). The first replica decides, and all begin with its values.
  /// Only when that has succeeded is an earlier run overwritten.
  void begin(const std::function<void(nn::ParameterSet&)>& initialize, const LoadMoments& moments = {});

  /// Trains to the end; the final (or best) model and eval_results are in the output directory then. Throws
  /// Error(Failure::interrupted) after saving on a signal of signals.h, Error(Failure::numerics) naming step, op and
  /// tensor if a loss or gradient, or a weight to be saved, is not finite.
  void run();

  const RunState& state() const { return state_; }

  /// work(), during which a failure of another replica is reported with `where` this one is and the last checkpoint.
  void with_standing(const std::string& where, const std::function<void()>& work);

 private:
  void make_steps();
  void make_step();
  void finish_step();
  bool evaluation_follows() const;
  void evaluate();
  void save();
  void stop();
  void finish();
  [[noreturn]] void refuse_numbers(const std::string& what) const;
  [[noreturn]] void refuse_memory(const std::string& what);
  /// From now on a failure of another replica is reported with `where` this one is, and the last checkpoint.
  void set_standing(const std::string& where);
  std::string next_step() const { return fmt::format("step {}", state_.steps_done + 1); }
  /// What all replicas do before the next step.
  struct Requests {
    bool save = false;  ///< --save-every-minutes have passed on the first replica's clock
    bool stop = false;  ///< any replica was asked to stop
  };
  Requests agree_on_requests() const;
  bool gave_up() const { return state_.gave_up(settings_.patience); }
  bool over() const { return state_.is_over(job_.plan.total_steps, settings_.patience); }
  bool due(std::int64_t step, std::int64_t every) const { return step % every == 0 || step == job_.plan.total_steps; }

  void warn_of_skipped_steps() const;

  const Job job_;
  const Settings& settings_;
  DataOrder order_;
  RunLog log_;
  SaveAndResume saves_;
  RunState state_;
  std::optional<StartedStep> under_way_;  // a step that the device may still be computing
  std::string before_failure_, after_failure_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point saved_at_ = begin_;
};

}  // namespace bertrand::training
