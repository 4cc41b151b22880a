// A whole training run, from its settings to the files in its directory, for any nn::Module.
//
//   Settings settings = finetuning_defaults();
//   settings.output = "runs/points";
//   complete(settings);
//   run_training({.settings = settings,
//                 .program = "points",
//                 .read = [](distributed::Collective*) { return RunIdentity{}; },
//                 .make_objective = [](const distributed::Replica& self) { return std::make_unique<Points>(self); }});
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/run/checkpoint.h"
#include "training/run/run_directory.h"
#include "training/run/run_identity.h"
#include "training/run/settings.h"
#include "training/step/objective.h"

namespace bertrand::training {

/// What a replica has in its hands when the run is over.
struct TrainedReplica {
  Objective& objective;  ///< made by make_objective
  nn::ParameterSet& parameters;
  const distributed::Replica& self;
  io::Files& files;  ///< of the run's directory; for the first replica
};

struct TrainingRun {
  const Settings& settings;                       ///< completed
  std::string program;                            ///< for run_config.json
  std::vector<std::filesystem::path> files = {};  ///< every file and directory that is read; empty names are none
  ProgramFiles program_files = {};                ///< the names of what is written beside the trainer's own files
  /// Reads what the objectives need and says what identifies the run. Called once, when the output directory is
  /// claimed. `processes`: all processes of the run; null if this is the only one.
  std::function<RunIdentity(distributed::Collective* processes)> read;
  std::function<std::unique_ptr<Objective>(const distributed::Replica& self)> make_objective;
  /// Further lines of the plan, each with its end. May be empty.
  std::function<std::string()> plan_text = {};
  /// Of several runs: the plan of the one before, which is not said again. May be null.
  std::string* said_plan = nullptr;
  /// Refuses what initialize() would not load into this network, on the first replica, before memory is taken for its
  /// parameters. Not called under --resume. May be empty.
  std::function<void(const nn::Module&)> check_start = {};
  /// Loads what the run starts from, on the first replica, and refuses numbers that are not finite: they would look
  /// like a learning rate that is too high. Not called if a checkpoint is resumed. May be empty: then the parameters
  /// stay as drawn from the seed.
  std::function<void(nn::ParameterSet&)> initialize = {};
  /// Fills the moments that this run begins with (SaveAndResume::begin_with_moments), on the first replica. Empty, on
  /// all replicas or on none: moments begin at 0.
  LoadMoments moments = {};
  /// Work of all replicas together when the run is over, under this name in messages. May be empty.
  std::string afterwards_name = {};
  std::function<void(const TrainedReplica&)> afterwards = {};
  /// Says for people what became of the run, from the files in its directory and into it, with `files`: last of all, in
  /// the process of the first replica, also of a run that failed or was stopped. That it fails is a warning. May be
  /// empty.
  std::function<void(io::Files& files)> report = {};
};

/// What a run came to, in the process of the first replica; empty in others and under --plan.
struct TrainingResult {
  Metrics evaluation;           ///< of the best model, or the last one if nothing is scored
  std::optional<double> score;  ///< of the best model
};

/// Trains to the end, or to the first stop signal if the program catches them (io/signals.h). The final (or best) model
/// and eval_results are in the output directory then. Throws Error as Trainer::run() does, and before the first step:
/// Failure::usage for an output directory in use, devices that do not exist, and processes that were started with other
/// settings; Failure::memory if the plan does not fit.
TrainingResult run_training(const TrainingRun& run);

/// Calls `write`, which makes the report of what is done and saved: what it throws is a warning. The program report
/// makes the same one from `of`.
void try_report(const std::string& of, const std::function<void()>& write);

/// One replica of a run that has claimed its directory.
struct RunReplica {
  const distributed::Replica& self;
  RunDirectory* directory;  ///< of the first replica; null on others and under --plan
  const Conditions& conditions;
};

/// The part of run_training() before any training, for programs that also do other work in a run directory: starts
/// processes and replicas, claims the directory, reads, agrees, and calls `work` on every replica.
void on_replicas(const TrainingRun& run, const std::function<void(const RunReplica&)>& work);

}  // namespace bertrand::training
