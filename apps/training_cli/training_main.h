// main() of a program that trains: its flags come from a table, and --resume takes them from run_config.json.
#pragma once
#include <functional>
#include <string>

#include "training/run/settings.h"

namespace bertrand::cli {

struct TrainingProgram {
  std::function<void(training::FlagTable&)> add_flags;  ///< all flags, those of `settings` too
  training::Settings& settings;
  std::function<void()> body;  ///< called when the flags are read
};

/// run_main() (main_guard.h) of such a program. Throws nothing.
int run_training_main(const std::string& description, int argc, char** argv, const TrainingProgram& program);

}  // namespace bertrand::cli
