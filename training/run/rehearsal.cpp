#include "training/run/rehearsal.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "distributed/exchange.h"
#include "io/error.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"
#include "optim/schedule.h"
#include "training/report/metrics_log.h"
#include "training/report/progress.h"
#include "training/run/data_order.h"
#include "training/run/trained_model.h"

namespace bertrand::training {
namespace {

/// Gives the model what the run begins with, on all replicas.
void initialize(const TrainingRun& run, TrainedModel& model, const distributed::Replica& self) {
  if (self.first()) {
    if (run.initialize) run.initialize(model.parameters);
    if (run.moments) run.moments(moments_of(model.training()));
  }
  share_from_first(model.training(), self, static_cast<bool>(run.moments));
}

void stop_if_asked(const distributed::Replica& self) {
  if (distributed::any(self, io::stop_requested())) fail(Failure::interrupted, "interrupted: nothing was written");
}

}  // namespace

void dry_run(const Rehearsal& rehearsal) {
  const auto& [run, objective, plan, replica] = rehearsal;
  const distributed::Replica& self = replica.self;
  const auto started = std::chrono::steady_clock::now();
  const std::unique_ptr<Objective> largest = objective.largest(self, plan.micro_batch_size);
  TrainedModel model(run.settings, plan.micro_batch_size, *largest, self, self.first());
  initialize(run, model, self);
  if (replica.directory) check_space(run.settings.output, checkpoint_bytes(model.training()));

  StepExamples step;
  const std::int64_t made_up = largest->examples(0);  // of one micro-batch
  for (std::int64_t i = 0; i < plan.micro_batches * made_up; ++i) step.numbers.push_back(i % made_up);
  model.stepper.finish(model.stepper.start(step, 1, optim::learning_rate(plan.schedule, 0)));
  {
    const NoGrad no_graph;
    largest->evaluate();
  }
  stop_if_asked(self);
  if (!self.first()) return;
  const auto bytes = [](std::size_t count) { return io::bytes_text(static_cast<double>(count)); };
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - started;
  io::say(fmt::format(
      "dry run: a step of the longest examples took {} of memory, {} were planned, and {} with reading the model and "
      "an evaluation; nothing is written\n",
      bytes(self.backend().memory().peak), bytes(plan.memory.total()), io::duration_text(time.count())));
}

void overfit_batch(const Rehearsal& rehearsal) {
  constexpr double kLearnt = 0.1, kFalling = 0.7;  // of the loss in the beginning
  const auto& [run, objective, plan, replica] = rehearsal;
  const distributed::Replica& self = replica.self;
  const Settings& settings = run.settings;
  TrainedModel model(settings, plan.micro_batch_size, objective, self, self.first());
  initialize(run, model, self);
  const StepExamples batch = DataOrder(settings, objective).at({});
  Progress progress;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double first = kNone, loss = kNone;
  std::int64_t step = 0;
  while (step < plan.total_steps && !(loss <= kLearnt * first)) {  // nor is a loss that is no number
    stop_if_asked(self);
    const StartedStep started = model.stepper.start(batch, ++step, settings.schedule.learning_rate);
    loss = model.stepper.finish(started).losses[0].value;
    if (!std::isfinite(first)) first = loss;
    if (!self.first() || settings.quiet) continue;
    io::say_event("step", json_line({.step = step, .figures = {{"loss", loss}}}));  // null if it is no number
    if (settings.json_lines) continue;
    const ProgressFigures figures{
        .step = step, .total_steps = plan.total_steps, .loss = loss, .learning_rate = settings.schedule.learning_rate};
    progress.update(figures);
    if (step % settings.log_every == 0) progress.log(figures);
  }
  const std::string fell =
      fmt::format("the loss of the first {} went from {:.4f} to {:.4f} in {}",
                  io::counted(batch.numbers.size(), "example"), first, loss, io::counted(step, "step"));
  if (!(loss <= kFalling * first))
    fail(Failure::numerics,
         "--overfit-batch: not learnt: {}; hint: usually --learning-rate is far too low or too high, --freeze leaves "
         "too little, or the labels do not follow from what the model sees: is it the right column, is the text cut?",
         fell);
  if (!self.first()) return;
  const auto message = [&](const std::string& text) {
    if (settings.json_lines) io::say(text);
    else progress.message(text);
  };
  if (loss <= kLearnt * first)
    message(fmt::format("learnt by heart: {}, so data, loss, model and rate fit together; nothing is written", fell));
  else
    message(
        fmt::format("being learnt: {}; more --steps or a higher --learning-rate would show whether by heart; "
                    "nothing is written",
                    fell));
}

}  // namespace bertrand::training
