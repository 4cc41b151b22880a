// run_config.json: what a run was begun with and whether its training has ended, for people and for programs.
#pragma once
#include <ctime>
#include <filesystem>
#include <string>

#include "io/files.h"
#include "training/run/plan.h"
#include "training/run/run_state.h"
#include "training/run/settings.h"

namespace bertrand::training {

struct RunConfig {
  const std::string& program;
  const Settings& settings;
  const Plan* plan;  ///< null: nothing is trained
  const Conditions& conditions;
  const distributed::Replica& self;
  std::time_t started = std::time(nullptr);  ///< of a run that writes it later than at its beginning
};

/// Writes `settings.output`/run_config.json. Throws Error(Failure::io).
void write_run_config(io::Files& files, const RunConfig& config);
/// Writes into the one in `directory`, if it is still there, that no step is left to make and the result is there.
/// Throws Error(Failure::io).
void note_end(io::Files& files, const std::filesystem::path& directory);
/// Whether the one in `directory` says that a training did not come to its end. An older version's does not say it.
bool is_cut_short(const std::filesystem::path& directory);

}  // namespace bertrand::training
