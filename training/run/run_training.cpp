// The order of a training run: check, claim, open, read, agree, plan, begin, train.
#include "training/run/run_training.h"

#include <fmt/format.h>

#include <cstdio>

#include "distributed/exchange.h"
#include "distributed/processes.h"
#include "io/file_arguments.h"
#include "tensor/profiler.h"
#include "training/run/devices.h"
#include "training/run/trainer.h"

namespace bertrand::training {
namespace {

/// Makes the plan and prints it, on the first replica; all have it then.
Plan announce(const Settings& settings, Objective& objective, const distributed::Replica& self) {
  Plan plan;
  if (self.first()) {
    plan = make_plan(settings, objective, self);
    fmt::print("{}", plan.text());
    std::fflush(stdout);
    if (!settings.plan_only) check_memory(settings, plan, objective, self);
  }
  return distributed::broadcast_value(self, plan);
}

/// trainer.run(), with the times of all ops if --profile asks for them.
void run_profiled(Trainer& trainer, const Settings& settings, const distributed::Replica& self) {
  if (!self.first() || settings.profile.empty()) return trainer.run();
  auto profiler = std::make_unique<Profiler>();
  self.backend().profiler = profiler.get();
  try {
    trainer.run();
  } catch (...) {
    static_cast<void>(profiler.release());  // a sum that goes on in the background may still write to it
    throw;
  }
  self.backend().profiler = nullptr;
  fmt::print("{}", profiler->table());
  io::replace_file(io::Files::system(), settings.profile, profiler->chrome_trace());
}

void train_replica(const TrainingRun& run, const RunReplica& replica) {
  const auto& [self, directory, conditions] = replica;
  const Settings& settings = run.settings;
  const std::unique_ptr<Objective> objective = run.make_objective(self);
  const Plan plan = announce(settings, *objective, self);
  if (settings.plan_only) return;
  nn::ParameterSet parameters(objective->model(), self.backend(),
                              {.dtype = settings.precision, .seed = settings.seed, .initialize = self.first()});
  Trainer trainer({settings, plan, conditions, *objective, parameters, self, directory, run.program});
  trainer.begin(run.initialize);
  run_profiled(trainer, settings, self);
  if (run.afterwards)
    trainer.with_standing(run.afterwards_name, [&] { run.afterwards({*objective, parameters, self}); });
}

void run_process(const TrainingRun& run, distributed::Collective* processes,
                 const std::function<void(const RunReplica&)>& work) {
  const Settings& settings = run.settings;
  const bool first = !processes || processes->rank() == 0;
  io::check_readable_twice(run.files);
  const auto directory = first ? claim_output(settings, run.files) : nullptr;
  if (first && !settings.profile.empty()) io::check_output("profile", settings.profile, run.files);
  distributed::ReplicaGroup group = open_replicas(settings, processes);
  const RunIdentity identity = run.read(processes);
  const Conditions conditions = agree_on_run(processes, settings, identity);
  group.run([&](const distributed::Replica& self) {
    work({.self = self, .directory = self.first() ? directory.get() : nullptr, .conditions = conditions});
  });
}

}  // namespace

void on_replicas(const TrainingRun& run, const std::function<void(const RunReplica&)>& work) {
  distributed::with_processes({.timeout = run.settings.collective_timeout},
                              [&](distributed::Collective* processes) { run_process(run, processes, work); });
}

void run_training(const TrainingRun& run) {
  on_replicas(run, [&](const RunReplica& replica) { train_replica(run, replica); });
}

}  // namespace bertrand::training
