// The loop of a training run: what comes before, between and after the steps.
#include "training/run/trainer.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "distributed/exchange.h"
#include "distributed/processes.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"
#include "optim/schedule.h"
#include "training/report/results.h"
#include "training/run/run_config.h"

namespace bertrand::training {

Trainer::Trainer(const Job& job)
    : job_(job),
      settings_(job.settings),
      order_(settings_, job.model.objective),
      log_(settings_, job.plan, job.self),
      saves_({settings_, job.conditions, job.model.training(), job.self, log_, files_of(job.directory),
              job.directory ? job.directory->names().evaluation : std::vector<std::string_view>()}) {}

void Trainer::begin(const std::function<void(nn::ParameterSet&)>& initialize, const LoadMoments& moments) {
  if (job_.self.first()) {
    const auto resumed = settings_.resume ? saves_.newest_state(job_.plan.total_steps) : std::nullopt;
    if (resumed) {
      state_ = *resumed;
      if (state_.steps_done < job_.plan.total_steps)
        log_.message(
            fmt::format("  rate goes on at {:g}", optim::learning_rate(job_.plan.schedule, state_.steps_done)));
    } else {
      if (settings_.resume) {
        job_.directory->refuse_results();
        log_.message(fmt::format("no checkpoint in {}: beginning with step 1", settings_.output.string()));
      }
      if (initialize) initialize(job_.model.parameters);
      if (moments) saves_.begin_with_moments(moments);
    }
    if (settings_.resume) job_.directory->remove_leftovers();  // what is refused keeps them: one may be the only copy
    // A run that is overwritten makes room.
    if (!settings_.overwrite && state_.steps_done < job_.plan.total_steps) saves_.check_space();
    job_.directory->clear();
    write_run_config(files_of(job_.directory), {job_.program, settings_, &job_.plan, job_.conditions, job_.self});
  }
  saves_.share(state_, static_cast<bool>(moments));
}

void Trainer::run() {
  log_.open(state_, files_of(job_.directory), job_.model.optimizer.loss_scale().read().skipped_steps);
  with_standing(next_step(), [&] {
    try {
      make_steps();
    } catch (const Error& error) {
      if (error.failure() != Failure::memory) throw;
      refuse_memory(error.what());
    }
    set_standing("after the last step");
    if (job_.self.first()) finish();
    job_.self.collective().barrier();  // the others wait here, so that a failure names the last checkpoint
  });
  if (settings_.save_model_only) saves_.forget_checkpoint();
}

void Trainer::make_steps() {
  while (true) {
    set_standing(next_step());
    if (state_.evaluation_due && !agree_on_requests().stop) evaluate();
    const Requests now = agree_on_requests();
    // At the end of a run that keeps its model alone there is nothing to go on with.
    const bool save_now = now.stop || (!(over() && settings_.save_model_only) &&
                                       (now.save || due(state_.steps_done, settings_.save_every) || gave_up()));
    if (save_now && state_.steps_done > saves_.saved_step()) save();
    if (now.stop) stop();
    if (over()) break;
    make_step();
    state_.evaluation_due = evaluation_follows();
  }
}

Trainer::Requests Trainer::agree_on_requests() const {
  const std::chrono::duration<double, std::ratio<60>> minutes = std::chrono::steady_clock::now() - saved_at_;
  const bool save =
      job_.self.first() && settings_.save_every_minutes > 0 && minutes.count() >= settings_.save_every_minutes;
  std::array<double, 2> wishes{save ? 1.0 : 0.0, io::stop_requested() ? 1.0 : 0.0};  // in one sum
  distributed::sum(job_.self, wishes);
  return {.save = wishes[0] > 0, .stop = wishes[1] > 0};
}

/// All processes stop here, and the first one says so.
void Trainer::stop() {
  if (distributed::launched().rank > 0) fail(Failure::interrupted, "");
  if (state_.steps_done == 0) fail(Failure::interrupted, "stopped before step 1; hint: --resume goes on");
  fail(Failure::interrupted, "stopped after step {}: state saved; hint: --resume goes on", state_.steps_done);
}

/// Starts a step, then finishes the one before: so a device has the next step when it is done with one. A CPU has
/// computed a step when start() returns, so its step is finished at once.
void Trainer::make_step() {
  const StepExamples examples = order_.at(state_.next);
  state_.next = order_.after(state_.next);
  if (state_.steps_done + 1 < job_.plan.total_steps) job_.model.stepper.read_ahead(order_.at(state_.next));
  const bool looked_at = settings_.histograms > 0 && due(state_.steps_done + 1, settings_.histograms);
  StartedStep next = job_.model.stepper.start(examples, state_.steps_done + 1,
                                              optim::learning_rate(job_.plan.schedule, state_.steps_done), looked_at);
  ++state_.steps_done;
  finish_step();
  under_way_ = std::move(next);
  if (looked_at || job_.self.backend().device().kind == Device::Kind::cpu) finish_step();
}

/// Whether the step that was made last is one to evaluate after.
bool Trainer::evaluation_follows() const {
  if (settings_.eval_every) return due(state_.steps_done, *settings_.eval_every);
  const bool epoch_ended = state_.next.step == 0;
  return epoch_ended || state_.steps_done == job_.plan.total_steps;
}

/// What is to be done about numbers that are not finite while a model is trained, in place of another hint.
void Trainer::refuse_numbers(const std::string& what) const {
  const std::string saved = saves_.saved_step() == 0 ? "" : "; last checkpoint: " + saves_.last_checkpoint();
  fail(Failure::numerics, "{}{}; hint: a lower --learning-rate or more --warmup-steps usually help",
       what.substr(0, what.find("; hint: ")), saved);
}

/// Waits for the step under way, if there is one. Call it before the parameters are read.
void Trainer::finish_step() {
  if (!under_way_) return;
  const StartedStep step = *std::exchange(under_way_, std::nullopt);
  StepResult result;
  try {
    result = job_.model.stepper.finish(step);
  } catch (const Error& error) {
    if (error.failure() != Failure::numerics) throw;
    refuse_numbers(error.what());
  }
  log_.step(step, result, job_.model.optimizer.loss_scale().dynamic());
  if (step.gradients) log_.histograms(step.number, job_.model.parameters, step.gradients);
}

/// An evaluation that is asked to stop stays due: the run saves, and --resume begins with it.
void Trainer::evaluate() {
  finish_step();
  const NoGrad no_graph;
  Metrics metrics;
  try {
    metrics = job_.model.objective.evaluate();
  } catch (const Error& error) {
    if (error.failure() == Failure::numerics)
      refuse_numbers(fmt::format("evaluation after step {}: {}", state_.steps_done, error.what()));
    if (error.failure() != Failure::interrupted) throw;
    return;
  }
  state_.evaluation_due = false;
  if (metrics.empty()) return;
  log_.evaluation(state_.steps_done, order_.epochs(state_.next), metrics);
  if (job_.self.first())
    if (const auto samples = job_.model.objective.samples()) log_.samples(state_.steps_done, *samples);
  const bool is_best = state_.note_evaluation(metrics, job_.model.objective.score(metrics));
  if (!is_best || !job_.self.first()) return;
  saves_.publish(state_.best);
  job_.model.objective.write_evaluation(files_of(job_.directory), settings_.output);
}

void Trainer::save() {
  finish_step();
  saves_.save(state_, [&] { set_standing(next_step()); });
  saved_at_ = std::chrono::steady_clock::now();
}

void Trainer::finish() {
  saves_.publish_result(state_);
  if (settings_.save_model_only) saves_.replace_checkpoints(state_);  // from here --resume does what is left
  const BestModel& best = state_.best;
  if (!state_.evaluation.empty())
    write_results(files_of(job_.directory), settings_.output,
                  {.metrics = state_.evaluation,
                   .global_step = best.score ? best.step : state_.steps_done,
                   .words = job_.model.objective.figures_in_words()});
  note_end(files_of(job_.directory), settings_.output);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin_;
  if (state_.steps_done < job_.plan.total_steps)
    log_.message(fmt::format("stopped early: {} without a better model (--patience)",
                             io::counted(settings_.patience, "evaluation")));
  log_.message(fmt::format(
      "finished after {}, {}: the {} is in {}{}", io::counted(state_.steps_done, "step"),
      io::duration_text(time.count()), best.score ? fmt::format("best model (step {})", best.step) : "final model",
      settings_.output.string(), settings_.save_model_only ? ", without checkpoints (--save-model-only)" : ""));
  warn_of_skipped_steps();
}

/// A few steps find the loss scale. More of them say that f16 is too narrow for the model or its targets.
void Trainer::warn_of_skipped_steps() const {
  if (!job_.model.optimizer.loss_scale().dynamic()) return;
  const std::int64_t skipped = job_.model.optimizer.loss_scale().read().skipped_steps;
  constexpr std::int64_t kFew = 5;
  if (skipped == 0 || 10 * skipped < state_.steps_done || (skipped < kFew && skipped < state_.steps_done)) return;
  io::warn(
      "{} of {} steps were skipped, because a gradient was not finite in {}{}; hint: --precision bf16 or f32, or "
      "smaller targets",
      skipped, state_.steps_done, name_of(settings_.precision),
      skipped == state_.steps_done ? ": no step moved the model" : "");
}

void Trainer::with_standing(const std::string& where, const std::function<void()>& work) {
  set_standing(where);
  try {
    work();
  } catch (const Error& error) {
    if (error.failure() != Failure::distributed) throw;
    fail(Failure::distributed, "{}{}{}", before_failure_, error.what(), after_failure_);
  }
}

void Trainer::set_standing(const std::string& where) {
  before_failure_ = where + ": ";
  after_failure_ = "; last checkpoint: " + saves_.last_checkpoint();
  job_.self.collective().set_standing(before_failure_, after_failure_);
}

/// Says which micro-batch would have fitted.
void Trainer::refuse_memory(const std::string& what) {
  const Backend& backend = job_.self.backend();
  const std::size_t all = backend.memory().in_use + backend.available_memory();
  fail(Failure::memory, "{}: {}; {}", next_step(), what,
       fitting_hint(settings_, job_.plan, job_.model.objective, job_.self, plannable(all)));
}

}  // namespace bertrand::training
