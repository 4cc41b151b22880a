// A command line as flags with their values: which come twice, and which a resumed run takes from its record.
#include "apps/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/cli/option_values.h"
#include "io/json.h"

namespace bertrand::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD: what JSON holds in place of other bytes

/// One flag as it was given.
struct Given {
  const CLI::Option* option = nullptr;  ///< null if there is no such flag
  std::string name;
  std::vector<std::string> values;
};

/// What comes before the first flag is left out.
std::vector<Given> flags_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<Given> flags;
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) {
      if (!flags.empty()) flags.back().values.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    Given flag{.name = argument.substr(0, equals)};
    flag.option = app.get_option_no_throw(flag.name);
    if (equals != std::string::npos) flag.values.push_back(argument.substr(equals + 1));
    flags.push_back(std::move(flag));
  }
  return flags;
}

bool takes_one_value(const CLI::Option& option) {
  return option.get_items_expected_max() == 1 && option.get_type_size_max() > 0;
}

const Given* find(const std::vector<Given>& flags, const CLI::Option* option) {
  const auto found = std::ranges::find(flags, option, &Given::option);
  return option && found != flags.end() ? &*found : nullptr;
}

/// Flags of one command that say nothing of the run.
bool is_of_command(const std::string& name) {
  static const std::set<std::string> names = {"--resume", "--overwrite", "--plan", "--profile", "--output"};
  return names.contains(name);
}

/// A value of a command that was given in `directory`, as it is to be given here.
std::string from_directory(const CLI::Option& option, const std::string& value, const fs::path& directory) {
  const std::string type = option.get_type_name();
  std::error_code ignored;
  if (paths_of(option) == Paths::none || value.empty() || fs::path(value).is_absolute() || directory.empty() ||
      fs::equivalent(directory, fs::current_path(), ignored))
    return value;
  // Of NAME|FILE a bare word is a name, whatever lies in the directory.
  const bool is_name = type.find('|') != std::string::npos && value.find_first_of("./") == std::string::npos;
  return is_name ? value : (directory / value).string();
}

struct Record {
  std::vector<std::string> arguments;
  fs::path directory;
};

/// The command in run_config.json, without the program's name.
Record read_record(const fs::path& file, const std::string& program) {
  const io::Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  if (const std::string began = reader.text("program"); began != program)
    fail(Failure::usage, "--resume: expected a run of {}, got one of {} in {}", program, began, file.string());
  Record record{.arguments = {}, .directory = reader.text("directory", "")};
  for (const io::Json& argument : reader.list("command")) {
    if (!argument.is_string()) reader.refuse("command", "texts", &argument);
    record.arguments.push_back(argument.get<std::string>());
  }
  if (!record.arguments.empty()) record.arguments.erase(record.arguments.begin());
  return record;
}

}  // namespace

std::string program_name(const CLI::App& app) {
  constexpr std::string_view kInstalled = "bertrand-";
  std::string name = app.get_name();
  if (name.starts_with(kInstalled)) name.erase(0, kInstalled.size());
  return name;
}

void refuse_second_values(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<Given> flags = flags_of(app, arguments);
  for (std::size_t i = 0; i < flags.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (flags[i].option && flags[i].option == flags[j].option && takes_one_value(*flags[i].option) &&
          !flags[i].values.empty() && !flags[j].values.empty())
        fail(Failure::usage, "{}: expected one value, got {} and {}", flags[i].name, flags[j].values.front(),
             flags[i].values.front());
}

std::vector<std::string> with_recorded_flags(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<Given> given = flags_of(app, arguments);
  const Given* output = find(given, app.get_option_no_throw("--output"));
  if (!find(given, app.get_option_no_throw("--resume")) || !output || output->values.empty()) return arguments;
  const fs::path file = fs::path(output->values.front()) / "run_config.json";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    // Whoever gives all flags again needs no record.
    for (const CLI::Option* option : app.get_options())
      if (option->get_required() && !find(given, option))
        fail(Failure::usage, "--resume: expected a run in {}, got no run_config.json there; hint: is --output right?",
             output->values.front());
    return arguments;
  }

  const Record record = read_record(file, program_name(app));
  std::set<const CLI::Option*> settled;
  for (const Given& flag : given) {
    if (!flag.option) continue;
    settled.insert(flag.option);
    const auto excludes = flag.option->get_excludes();
    settled.insert(excludes.begin(), excludes.end());
  }
  std::vector<std::string> all = arguments;
  for (const Given& flag : flags_of(app, record.arguments)) {
    if (!flag.option || settled.contains(flag.option) || is_of_command(flag.name)) continue;
    std::vector<std::string> values;
    for (const std::string& value : flag.values) {
      if (value.find(kReplacement) != std::string::npos)
        fail(Failure::usage, "{}: expected on the command line, as {} has it in bytes that are not UTF-8", flag.name,
             file.string());
      values.push_back(from_directory(*flag.option, value, record.directory));
    }
    // In one word, as a switch wants it, and so that a value may begin with a hyphen.
    all.push_back(values.size() == 1 ? flag.name + "=" + values.front() : flag.name);
    if (values.size() != 1) all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace bertrand::cli
