// What a run reports while it trains: metrics.jsonl, TensorBoard's event file and lines for people.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "training/report/metrics_log.h"
#include "training/report/progress.h"
#include "training/run/plan.h"
#include "training/run/run_state.h"
#include "training/step/step.h"

namespace bertrand::training {

/// Only the first replica writes. The calls of the others do nothing.
class RunLog {
 public:
  RunLog(const Settings& settings, const Plan& plan, const distributed::Replica& self)
      : settings_(settings), plan_(plan), self_(self) {}

  /// Opens the files, which keep their lines up to the last step of `state`, where the run begins. `skipped_steps`: how
  /// many were skipped until then. Throws Error(Failure::io).
  void open(const RunState& state, io::Files& files, std::int64_t skipped_steps);
  /// A finished step. `losses_are_scaled`: the line carries the loss scale.
  void step(const StartedStep& step, const StepResult& result, bool losses_are_scaled);
  void evaluation(std::int64_t step, double epochs, const Metrics& metrics);
  /// What the model says of a few examples: a line of samples.jsonl, and a text in TensorBoard.
  void samples(std::int64_t step, const Samples& samples);
  /// The histogram of each named part of the parameters, and of its gradient if it is trained. `gradients` are flat, as
  /// in the set.
  void histograms(std::int64_t step, const nn::ParameterSet& parameters, const Tensor& gradients);
  /// A line for people.
  void message(const std::string& text);

  /// Of the steps since the last line of metrics; on the first replica only.
  const LossSums& unlogged() const { return interval_.losses; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Steps since the last line of metrics: its losses are their means, and its rates leave out evaluating and saving.
  struct Interval {
    double seconds = 0;
    std::int64_t examples = 0, tokens = 0;  // since the run was begun or resumed, at most
    LossSums losses;
    std::int64_t skipped_before = 0;  // steps of the whole run

    double per_second(std::int64_t count) const { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }
  };

  void write(LogLine line, const char* event);

  const Settings& settings_;
  const Plan& plan_;
  const distributed::Replica& self_;
  std::unique_ptr<MetricsLog> metrics_;
  Progress progress_;
  Interval interval_;
  Clock::time_point begin_, last_finish_;
};

}  // namespace bertrand::training
