// Flags that come from elsewhere than the command line: a file of settings, the environment, the record of a run.
#pragma once
#include <string>
#include <vector>

#include "apps/cli/command_line.h"

namespace bertrand::cli {

/// Adds --settings and --print-settings to a command.
void add_settings_flags(CLI::App& app);

/// The arguments, and after them the flags of `app` that they lack: of the environment (BERTRAND_<FLAG>, in capitals
/// with _ for -), then of the file that --settings names, a TOML file of `flag = value` or the run_config.json of an
/// earlier run. Where each was found is put into `sources`. In TOML, what stands under [PROGRAM] is for that program
/// alone, and under [PROGRAM.COMMAND] for one of its commands. Throws Error(Failure::usage) naming the file and the
/// nearest name if it sets what is no flag or has a section for no program, as io::read_file() if it cannot be read.
std::vector<std::string> with_settings(const CLI::App& app, const std::vector<std::string>& arguments,
                                       Sources& sources);

/// Whether --print-settings is among the arguments.
bool prints_settings(const CLI::App& app, const std::vector<std::string>& arguments);
/// Throws CLI::CallForVersion with all flags of `app` that are among the arguments, and where they were found, as TOML.
[[noreturn]] void print_settings(const CLI::App& app, const std::vector<std::string>& arguments,
                                 const Sources& sources);

}  // namespace bertrand::cli
