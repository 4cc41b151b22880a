// The order of a training run: check, claim, open, agree, read, agree on that, plan, begin, train.
#include "training/run/run_training.h"

#include <fmt/format.h>

#include <utility>

#include "distributed/exchange.h"
#include "distributed/processes.h"
#include "io/file_arguments.h"
#include "io/file_names.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"
#include "tensor/profiler.h"
#include "training/run/checkpoint.h"
#include "training/run/devices.h"
#include "training/run/rehearsal.h"
#include "training/run/trained_model.h"
#include "training/run/trainer.h"

namespace bertrand::training {
namespace {

std::string text_of_saves(const Settings& settings) {
  if (settings.overfit_batch) return "";
  std::string minutes;
  if (settings.save_every_minutes > 0)
    minutes = fmt::format(", and {:g} minute{} after the save before", settings.save_every_minutes,
                          settings.save_every_minutes == 1 ? "" : "s");
  return fmt::format("  saves       every {}{}{}\n", io::counted(settings.save_every, "step"), minutes,
                     settings.save_model_only ? "" : ", and at the end");
}

std::string text_of_patience(const Settings& settings) {
  if (settings.patience == 0 || settings.overfit_batch) return "";
  return fmt::format("  patience    the run ends after {} in a row without a better model\n",
                     io::counted(settings.patience, "evaluation"));
}

/// How many replicas the run can ever use. A run is resumed with any number of them up to that.
std::string text_of_sharing(const Plan& plan) {
  return fmt::format(
      "  sharing     by at most {}, the micro-batches of a step; a smaller --micro-batch-size allows more\n",
      io::counted(plan.micro_batches, "replica"));
}

std::string text_of_sums(const distributed::Collective& collective) {
  const std::string way = collective.way_of_sums();
  return way.empty() ? "" : fmt::format("  sums        {}\n", way);
}

/// The plan as one object for programs.
void say_plan(const Plan& plan) {
  io::say_event("plan", fmt::format("{{\"steps\":{},\"epochs\":{},\"examples_per_epoch\":{},\"batch_size\":{},"
                                    "\"micro_batch_size\":{},\"replicas\":{},\"parameters\":{},\"memory_bytes\":{},"
                                    "\"available_bytes\":{},\"process_bytes\":{}}}",
                                    plan.total_steps, plan.epochs, plan.examples_per_epoch, plan.batch_size,
                                    plan.micro_batch_size, plan.replicas, plan.parameters, plan.memory.total(),
                                    plan.memory.available, plan.memory.process));
}

/// The plan for people. `self` makes it.
std::string text_of_plan(const TrainingRun& run, Objective& objective, const distributed::Replica& self,
                         const Plan& plan) {
  const Settings& settings = run.settings;
  return plan.text() + rates_of(settings, objective).text(objective.model()) + text_of_saves(settings) +
         text_of_patience(settings) + text_of_sharing(plan) + text_of_sums(self.collective()) +
         (run.plan_text ? run.plan_text() : "");
}

/// Whether the run before had the same plan, but for what the machine has at the moment.
bool was_said(const TrainingRun& run, Objective& objective, const distributed::Replica& self, Plan plan) {
  if (!run.said_plan) return false;
  plan.memory.available = plan.memory.process = 0;
  const std::string text = text_of_plan(run, objective, self, plan);
  return std::exchange(*run.said_plan, text) == text;
}

/// Makes the plan, prints it, and refuses one that does not fit.
Plan announce(const TrainingRun& run, Objective& objective, const distributed::Replica& self) {
  const Settings& settings = run.settings;
  const Plan plan = make_plan(settings, objective, self);
  if (!settings.quiet) say_plan(plan);
  if (!settings.quiet && io::line_format() == io::LineFormat::text && !was_said(run, objective, self, plan))
    io::say(text_of_plan(run, objective, self, plan));
  for (const std::string& doubt : doubts_of(settings, plan)) io::warn("{}", doubt);
  if (!settings.plan_only || settings.most_memory) check_memory(settings, plan, objective, self);
  return plan;
}

/// The plan that the first replica makes, on all of them. To count the epochs of much text may take longer than
/// --collective-timeout. Meanwhile the other processes count the epoch that they would count before their first step.
/// Replicas beside the first do not: it counts for them, and the plan measures the memory of their process.
Plan plan_together(const TrainingRun& run, Objective& objective, const distributed::Replica& self) {
  Plan plan;
  distributed::work_apart(self.collective(), self.backend(), [&] {
    if (self.first()) plan = announce(run, objective, self);
    else if (self.rank() >= replicas_of_process(run.settings)) objective.examples(0);
  });
  return distributed::broadcast_value(self, plan);
}

/// The table for people, or its totals as one object for programs.
void say_profile(const Profiler& profiler) {
  if (io::line_format() == io::LineFormat::text) return io::say(profiler.table());
  std::string totals = profiler.totals();
  std::erase(totals, '\n');
  io::say_event("profile", totals);
}

/// trainer.run(), with the times of all ops if --profile asks for them.
void run_profiled(Trainer& trainer, const Settings& settings, const RunReplica& replica) {
  const distributed::Replica& self = replica.self;
  if (!self.first() || settings.profile.empty()) return trainer.run();
  auto profiler = std::make_unique<Profiler>();
  self.backend().profiler = profiler.get();
  const auto write = [&](const Profiler* of) {
    try {
      say_profile(*of);
      io::replace_file(io::Files::system(), settings.profile, of->chrome_trace());
      io::replace_file(files_of(replica.directory), settings.output / kProfile, of->totals());
    } catch (const Error& error) {  // the model, or what ended the run, is worth more
      io::warn("{}", error.what());
    }
  };
  try {
    trainer.run();
  } catch (...) {
    const Profiler* const kept = profiler.release();  // a sum that goes on in the background may still write to it
    write(kept);
    throw;
  }
  self.backend().profiler = nullptr;
  write(profiler.get());
}

void report_on(const TrainingRun& run, const RunReplica& replica) {
  if (!replica.self.first() || !run.report) return;
  // The run is saved. One that was stopped still gets its report.
  if (!io::stop_requested()) io::catch_stop_signals(io::OnStop::leave);
  try_report(run.settings.output.string(), [&] { run.report(replica.directory->files()); });
}

void train_replica(const TrainingRun& run, const RunReplica& replica, TrainingResult& result) {
  const auto& [self, directory, conditions] = replica;
  const Settings& settings = run.settings;
  const std::unique_ptr<Objective> objective = run.make_objective(self);
  const Plan plan = plan_together(run, *objective, self);
  if (settings.plan_only) return;
  if (self.first() && run.check_start && !settings.resume) run.check_start(objective->model());
  if (settings.dry_run) return dry_run({run, *objective, plan, replica});
  if (settings.overfit_batch) return overfit_batch({run, *objective, plan, replica});
  io::catch_stop_signals(io::OnStop::save);  // so far nothing was trained
  TrainedModel model(settings, plan.micro_batch_size, *objective, self, self.first());
  Trainer trainer({settings, plan, conditions, model, self, directory, run.program});
  trainer.begin(run.initialize, run.moments);
  try {
    run_profiled(trainer, settings, replica);
    if (self.first()) result = {.evaluation = trainer.state().evaluation, .score = trainer.state().best.score};
    if (run.afterwards)
      trainer.with_standing(run.afterwards_name, [&] {
        run.afterwards({*objective, model.parameters, replica.self, files_of(replica.directory)});
      });
  } catch (...) {
    report_on(run, replica);
    throw;
  }
  report_on(run, replica);
}

/// Throws Error(Failure::usage) if the trace would replace a file that the run reads or writes.
void check_profile(const TrainingRun& run) {
  namespace fs = std::filesystem;
  const fs::path& profile = run.settings.profile;
  io::check_output("profile", profile, run.files);
  const fs::path parent = io::parent_of(profile);
  std::error_code ignored;
  for (const fs::path& input : run.files)
    if (fs::is_directory(input, ignored) && fs::equivalent(parent, input, ignored))
      fail(Failure::usage, "--profile: expected a file beside what the run reads, got {} in {}", profile.string(),
           input.string());
  refuse_file_of_run("profile", profile, run.program_files);
  if (fs::equivalent(parent, run.settings.output, ignored) && belongs_to_run(profile, run.program_files))
    fail(Failure::usage, "--profile: expected a file that is not the run's, got {}", profile.string());
}

void run_process(const TrainingRun& run, distributed::Collective* processes,
                 const std::function<void(const RunReplica&)>& work) {
  const Settings& settings = run.settings;
  const bool first = !processes || processes->rank() == 0;
  io::check_readable_twice(run.files);
  const auto directory = first ? claim_output(settings, run.files, run.program_files) : nullptr;
  if (first && !settings.profile.empty()) check_profile(run);
  distributed::ReplicaGroup group = open_replicas(settings, processes);
  if (processes) agree_on_start(*processes, settings);
  const RunIdentity identity = run.read(processes);
  const Conditions conditions = agree_on_run(processes, settings, identity);
  if (settings.validate_only) {
    if (first) io::say("settings and data can be used; nothing was trained and nothing is written\n");
    if (processes) processes->barrier();  // they end together
    return;
  }
  if (first && settings.resume) check_resumable(settings.output, conditions);
  group.run([&](const distributed::Replica& self) {
    work({.self = self, .directory = self.first() ? directory.get() : nullptr, .conditions = conditions});
  });
}

}  // namespace

void try_report(const std::string& of, const std::function<void()>& write) {
  try {
    write();
  } catch (const std::exception& error) {
    if (io::leave_requested()) io::warn("no report: interrupted; hint: report {} makes it", of);
    else io::warn("no report: {}", error.what());
  }
}

void on_replicas(const TrainingRun& run, const std::function<void(const RunReplica&)>& work) {
  distributed::with_processes({.timeout = run.settings.collective_timeout},
                              [&](distributed::Collective* processes) { run_process(run, processes, work); });
}

TrainingResult run_training(const TrainingRun& run) {
  TrainingResult result;
  on_replicas(run, [&](const RunReplica& replica) { train_replica(run, replica, result); });
  return result;
}

}  // namespace bertrand::training
