// A command line as flags with their values, before any of them is parsed.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bertrand::cli {

/// The name of the program as its records have it: without the "bertrand-" that it is installed with.
std::string program_name(const CLI::App& app);

/// One flag as it was given.
struct Given {
  const CLI::Option* option = nullptr;  ///< null if there is no such flag
  std::string name;
  std::vector<std::string> values;
};

/// Whether a flag may be set by a variable of the environment or a file of settings.
enum class Elsewhere {
  taken,
  refused,     ///< it stands on the command line alone
  passed_over  ///< so does it, but its variable may be meant for another program: HELP, VERSION, PRINT
};
Elsewhere elsewhere(const CLI::Option& option);

/// Where flags that are not on the command line were found: "BERTRAND_SEED" or a file, by their names.
using Sources = std::map<std::string, std::string>;

/// The flags among the arguments. What comes before the first one is left out.
std::vector<Given> flags_of(const CLI::App& app, const std::vector<std::string>& arguments);

/// The flag of this option among those given; null if there is none.
const Given* find(const std::vector<Given>& flags, const CLI::Option* option);

/// Those of `more` that are neither among the arguments nor excluded by them.
std::vector<Given> unsettled(const CLI::App& app, const std::vector<std::string>& arguments,
                             const std::vector<Given>& more);

/// Adds a flag after the arguments.
void append(std::vector<std::string>& arguments, const Given& flag);

/// The flags of the command in a run_config.json, whose relative paths are made to hold here. Throws
/// Error(Failure::usage), naming `flag`, if another program than `app` began the run, Error(Failure::model) if the file
/// is damaged.
std::vector<Given> recorded_flags(const CLI::App& app, const std::string& flag, const std::filesystem::path& file);

/// Throws Error(Failure::usage) if a flag that takes one value has several or is given twice, or if one lacks its
/// value.
void refuse_numbers_of_values(const CLI::App& app, const std::vector<std::string>& arguments);

/// Throws Error(Failure::usage) if a flag without a value is given one, as --cased=maybe, that is neither true nor
/// false.
void refuse_switch_values(const CLI::App& app, const std::vector<std::string>& arguments);

/// If --resume is among the arguments: the arguments, and all flags of the command that began the run in --output, but
/// for those given again and those that they exclude; `sources` then names the record for them. Its relative paths are
/// made to hold here. Throws Error(Failure::usage) if another program began the run, or if the arguments name another
/// model to begin with, Error(Failure::model) if run_config.json is damaged.
std::vector<std::string> with_recorded_flags(const CLI::App& app, const std::vector<std::string>& arguments,
                                             Sources& sources);

}  // namespace bertrand::cli
