// A command line as flags with their values, before any of them is parsed.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bertrand::cli {

/// The name of the program as its records have it: without the "bertrand-" that it is installed with.
std::string program_name(const CLI::App& app);

/// Throws Error(Failure::usage) naming both values if a flag that takes one value is given twice.
void refuse_second_values(const CLI::App& app, const std::vector<std::string>& arguments);

/// If --resume is among the arguments: the arguments, and all flags of the command that began the run in --output, but
/// for those given again and those that they exclude. Its relative paths are made to hold here. Throws
/// Error(Failure::usage) if another program began the run, Error(Failure::model) if run_config.json is damaged.
std::vector<std::string> with_recorded_flags(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace bertrand::cli
