#include "apps/cli/settings_sources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "apps/cli/command_line.h"
#include "apps/cli/examples.h"
#include "apps/cli/foreign_flags.h"
#include "apps/cli/option_values.h"
#include "apps/cli/toml.h"
#include "io/error.h"
#include "io/nearest_name.h"
#include "io/say.h"

namespace bertrand::cli {
namespace {

namespace fs = std::filesystem;

const char* const kSettings = "--settings";
const char* const kPrintSettings = "--print-settings";

constexpr std::string_view kPrefix = "BERTRAND_";

/// BERTRAND_LEARNING_RATE of --learning-rate.
std::string variable_of(const std::string& flag) {
  std::string name = std::string(kPrefix) + flag.substr(2);
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

/// A variable may be for another program. One whose name is nearly that of a flag of this one is most likely for it.
void warn_of_misspelt_variables(const CLI::App& app) {
  std::vector<std::string> known = {"MODULES", "SHARED_MEMORY"};  // which are no flags
  for (const CLI::Option* option : app.get_options())
    for (const std::string& flag : option->get_lnames())
      known.push_back(variable_of("--" + flag).substr(kPrefix.size()));
  for (char** entry = environ; *entry; ++entry) {
    std::string_view name(*entry);
    name = name.substr(0, name.find('='));
    if (!name.starts_with(kPrefix)) continue;
    const auto near = io::nearest_name(name.substr(kPrefix.size()), known);
    if (near && *near != name.substr(kPrefix.size()))
      io::warn("{}: expected the variable of a flag, got another name; did you mean {}{}?", name, kPrefix, *near);
  }
}

/// `variables` names that of each flag.
std::vector<Given> flags_of_environment(const CLI::App& app, const std::vector<std::string>& arguments,
                                        Sources& variables) {
  const bool runs = std::ranges::none_of(arguments, [](const std::string& argument) {
    return argument == "--help" || argument == "-h" || argument == "--version";
  });
  if (runs) warn_of_misspelt_variables(app);
  std::vector<Given> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& flag : option->get_lnames()) {
      const std::string name = "--" + flag, variable = variable_of(name);
      const char* const value = std::getenv(variable.c_str());
      if (!value || !*value) continue;
      if (elsewhere(*option) == Elsewhere::refused && runs)
        fail(Failure::usage, "{}: expected on the command line alone, got it in the environment", variable);
      if (elsewhere(*option) != Elsewhere::taken) continue;
      Given given{.option = option, .name = name, .values = {value}};
      use_own_units(app, given);
      if (find(flags, given.option))
        fail(Failure::usage, "{}: expected once, got another variable of the same meaning too", variable);
      variables[given.name] = variable;
      flags.push_back(std::move(given));
    }
  return flags;
}

/// Whether a section, as its names from the outermost inwards, is for this command: [prepare] and [prepare.vocab] are
/// for `prepare vocab`. Throws Error(Failure::usage) if it is for no program or command.
bool is_own_section(const CLI::App& command, const std::vector<std::string>& section, const fs::path& file) {
  const auto refuse_unless_one_of = [&](const std::string& what, const std::string& name,
                                        const std::vector<std::string>& names) {
    if (std::ranges::count(names, name) == 0)
      fail(Failure::usage, "{}: [{}]: expected the name of a {}{}", file.string(), fmt::join(section, "."), what,
           io::did_you_mean(name, names));
  };
  const CLI::App& program = command.get_parent() ? *command.get_parent() : command;
  refuse_unless_one_of("program", section.front(), program_names());
  if (section.front() != program_name(program)) return false;
  if (section.size() == 1) return true;
  std::vector<std::string> commands;
  for (const CLI::App* one : program.get_subcommands(nullptr)) commands.push_back(one->get_name());
  refuse_unless_one_of("command of " + section.front(), section.back(), commands);
  return section.back() == command.get_name();
}

/// A TOML file: flags without a section, or under that of this program, which decides; those of other programs are
/// theirs.
std::vector<Given> flags_of_toml(const CLI::App& app, const fs::path& file) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    if (elsewhere(*option) == Elsewhere::taken) std::ranges::copy(option->get_lnames(), std::back_inserter(known));
  std::vector<Given> flags;
  std::map<const CLI::Option*, std::size_t> depths;
  for (TomlSetting& setting :
       read_toml(file, [&](const std::vector<std::string>& section) { return is_own_section(app, section, file); })) {
    std::string name = setting.name;
    std::replace(name.begin(), name.end(), '_', '-');
    const CLI::Option* const option = app.get_option_no_throw("--" + name);
    if (option && elsewhere(*option) != Elsewhere::taken)
      fail(Failure::usage, "{}: {}: expected on the command line alone, got it in a file", file.string(), setting.name);
    if (!option) {
      const std::string near = io::did_you_mean(name, known);
      const auto hint = hint_for(app, "--" + name);
      fail(Failure::usage, "{}: {}: expected a flag of {}{}", file.string(), setting.name, program_name(app),
           hint || near.empty()
               ? "; hint: " + hint.value_or("what is for one program alone stands under its name in []")
               : near);
    }
    const bool takes_many = option->get_items_expected_max() > 1;
    if (setting.values.empty() || (setting.values.size() > 1 && !takes_many))
      fail(Failure::usage, "{}: {}: expected {}, got [{}]", file.string(), setting.name,
           takes_many ? "values" : "one value", fmt::join(setting.values, ", "));
    Given given{.option = option, .name = "--" + name, .values = std::move(setting.values)};
    use_own_units(app, given);
    const auto [depth, is_first] = depths.emplace(given.option, setting.depth);
    if (is_first) {
      flags.push_back(std::move(given));
    } else if (depth->second == setting.depth) {
      fail(Failure::usage, "{}: {}: expected once in a section or before the first one, got twice", file.string(),
           setting.name);
    } else if (depth->second < setting.depth) {
      depth->second = setting.depth;
      *std::ranges::find(flags, given.option, &Given::option) = std::move(given);
    }
  }
  return flags;
}

/// "steps = 100", a line of TOML.
std::string toml_line(const Given& flag) {
  std::vector<std::string> values;
  for (const std::string& value : flag.values) values.push_back(toml_value(value));
  const std::string name = flag.name.substr(2);
  if (values.empty()) return name + " = true";
  return values.size() == 1 ? fmt::format("{} = {}", name, values[0])
                            : fmt::format("{} = [{}]", name, fmt::join(values, ", "));
}

}  // namespace

void add_settings_flags(CLI::App& app) {
  // Their values are taken before the others are parsed.
  app.add_option_function<std::string>(
         kSettings, [](const std::string&) {},
         "flags that are not given, from a TOML file or the run_config.json of another run")
      ->type_name("FILE");
  app.add_flag_function(
      kPrintSettings, [](std::int64_t) {}, "print the flags that are set, and by what, as TOML, and exit");
}

std::vector<std::string> with_settings(const CLI::App& app, const std::vector<std::string>& arguments,
                                       Sources& sources) {
  const std::vector<Given> given = flags_of(app, arguments);
  std::vector<std::string> all = arguments;
  const auto add = [&](const std::vector<Given>& more, const auto& source) {
    for (const Given& flag : unsettled(app, all, more)) {
      append(all, flag);
      sources[flag.name] = source(flag);
    }
  };
  Sources variables;
  add(flags_of_environment(app, arguments, variables), [&](const Given& flag) { return variables.at(flag.name); });
  if (const Given* settings = find(given, app.get_option_no_throw(kSettings))) {
    const fs::path file = settings->values.front();
    refuse_empty_path(kSettings, file);
    add(file.extension() == ".json" ? recorded_flags(app, kSettings, file) : flags_of_toml(app, file),
        [&](const Given&) { return file.string(); });
  }
  return all;
}

bool prints_settings(const CLI::App& app, const std::vector<std::string>& arguments) {
  return find(flags_of(app, arguments), app.get_option_no_throw(kPrintSettings)) != nullptr;
}

void print_settings(const CLI::App& app, const std::vector<std::string>& arguments, const Sources& sources) {
  const std::vector<Given> given = flags_of(app, arguments);
  std::string text, source;
  for (const Given& flag : given) {
    if (!flag.option || elsewhere(*flag.option) != Elsewhere::taken) continue;
    const auto found = sources.find(flag.name);
    const std::string from = found == sources.end() ? "command line" : found->second;
    if (from != source) text += fmt::format("# {}\n", source = from);
    text += toml_line(flag) + '\n';
  }
  if (!text.empty()) text.pop_back();
  throw CLI::CallForVersion(text, 0);
}

}  // namespace bertrand::cli
