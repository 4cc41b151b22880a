// run_config.json: what a run was begun with, for people and for programs.
#pragma once
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
};

/// Writes `settings.output`/run_config.json. Throws Error(Failure::io).
void write_run_config(io::Files& files, const RunConfig& config);

}  // namespace bertrand::training
