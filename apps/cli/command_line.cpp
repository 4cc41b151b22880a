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

bool needs_value(const CLI::Option& option) {
  return option.get_items_expected_min() > 0 && option.get_type_size_max() > 0;
}

bool takes_one_value(const CLI::Option& option) {
  return option.get_items_expected_max() == 1 && option.get_type_size_max() > 0;
}

/// Whether it is the second name of a switch, --no-x.
bool turns_off(const Given& flag) {
  return flag.name.starts_with("--") && flag.option->check_fname(flag.name.substr(2));
}

/// The flags that say what one command is to do, and nothing of a run: none of them is taken from its record.
constexpr std::pair<const char*, Elsewhere> kOfCommand[] = {{"help", Elsewhere::passed_over},
                                                            {"version", Elsewhere::passed_over},
                                                            {"print", Elsewhere::passed_over},
                                                            {"settings", Elsewhere::refused},
                                                            {"print-settings", Elsewhere::refused},
                                                            {"resume", Elsewhere::refused},
                                                            {"overwrite", Elsewhere::refused},
                                                            {"output", Elsewhere::taken},
                                                            {"plan", Elsewhere::taken},
                                                            {"dry-run", Elsewhere::taken},
                                                            {"validate-only", Elsewhere::taken},
                                                            {"overfit-batch", Elsewhere::taken},
                                                            {"profile", Elsewhere::taken},
                                                            {"quiet", Elsewhere::taken}};

/// Its row in the table, or null.
const std::pair<const char*, Elsewhere>* of_command(const CLI::Option& option) {
  const auto* const row =
      std::ranges::find_if(kOfCommand, [&](const auto& it) { return option.check_lname(it.first); });
  return row == std::end(kOfCommand) ? nullptr : row;
}

/// A value of a command that was given in `directory`, as it is to be given here.
std::string from_directory(const CLI::Option& option, const std::string& value, const fs::path& directory) {
  const std::string type = option.get_type_name();
  std::error_code ignored;
  if (paths_of(option) == Paths::none || value.empty() || fs::path(value).is_absolute() || directory.empty() ||
      fs::equivalent(directory, fs::current_path(), ignored))
    return value;
  // A bare word for NAME|FILE is a name, whatever is in the directory.
  const bool is_name = type.find('|') != std::string::npos && value.find_first_of("./") == std::string::npos;
  return is_name ? value : (directory / value).string();
}

/// Throws Error(Failure::usage) if the arguments name another model to begin with than the run began with: it would not
/// be read, as all weights come from the checkpoint.
void refuse_other_start(const CLI::App& app, const std::vector<Given>& given, const std::vector<Given>& recorded) {
  for (const char* name : {"--model", "--init", "--config"}) {
    const CLI::Option* const option = app.get_option_no_throw(name);
    const Given* const now = find(given, option);
    if (!now || now->values.empty()) continue;
    const Given* const before = find(recorded, option);
    if (before && !before->values.empty() &&
        fs::weakly_canonical(before->values.front()) == fs::weakly_canonical(now->values.front()))
      continue;
    fail(Failure::usage,
         "--resume: expected to go on with the weights of the run, which began with {}, got {} {}; hint: leave {} out, "
         "or begin a new run in another --output",
         before ? fmt::format("{} {}", name, fmt::join(before->values, " ")) : fmt::format("no {}", name), name,
         now->values.front(), name);
  }
}

/// What a file may be that stands behind the value of another flag.
std::string hint_of_missing_name(const CLI::App& app, const std::vector<Given>& given, const std::string& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return "";
  for (const char* name : {"--input", "--model", "--train"})
    if (const CLI::Option* option = app.get_option_no_throw(name); option && !find(given, option))
      return fmt::format("; hint: is {} for {}?", file, name);
  return "";
}

}  // namespace

std::string program_name(const CLI::App& app) {
  constexpr std::string_view kInstalled = "bertrand-";
  std::string name = app.get_name();
  if (name.starts_with(kInstalled)) name.erase(0, kInstalled.size());
  return name;
}

Elsewhere elsewhere(const CLI::Option& option) {
  const auto* const row = of_command(option);
  return row ? row->second : Elsewhere::taken;
}

std::vector<Given> flags_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<Given> flags;
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--") && argument != "-h") {
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

const Given* find(const std::vector<Given>& flags, const CLI::Option* option) {
  const auto found = std::ranges::find(flags, option, &Given::option);
  return option && found != flags.end() ? &*found : nullptr;
}

std::vector<Given> unsettled(const CLI::App& app, const std::vector<std::string>& arguments,
                             const std::vector<Given>& more) {
  std::set<const CLI::Option*> settled;
  for (const Given& flag : flags_of(app, arguments)) {
    if (!flag.option) continue;
    settled.insert(flag.option);
    const auto excludes = flag.option->get_excludes();
    settled.insert(excludes.begin(), excludes.end());
  }
  std::vector<Given> rest;
  std::ranges::copy_if(more, std::back_inserter(rest),
                       [&](const Given& flag) { return !settled.contains(flag.option); });
  return rest;
}

void append(std::vector<std::string>& arguments, const Given& flag) {
  // In one word, as a switch wants it, and so that a value may begin with a hyphen. CLI11 takes no empty value so.
  const bool in_one_word = flag.values.size() == 1 && !flag.values.front().empty();
  arguments.push_back(in_one_word ? flag.name + "=" + flag.values.front() : flag.name);
  if (!in_one_word) arguments.insert(arguments.end(), flag.values.begin(), flag.values.end());
}

std::vector<Given> recorded_flags(const CLI::App& app, const std::string& flag, const fs::path& file) {
  const io::Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  if (const std::string began = reader.text("program"); began != program_name(app))
    fail(Failure::usage, "{}: expected a run of {}, got one of {} in {}", flag, program_name(app), began,
         file.string());
  const fs::path directory = reader.text("directory", "");
  std::vector<std::string> arguments;
  for (const io::Json& argument : reader.list("command")) {
    if (!argument.is_string()) reader.refuse("command", "texts", &argument);
    arguments.push_back(argument.get<std::string>());
  }
  if (!arguments.empty()) arguments.erase(arguments.begin());  // the program's name

  std::vector<Given> flags;
  for (Given& recorded : flags_of(app, arguments)) {
    if (!recorded.option || of_command(*recorded.option)) continue;
    if (recorded.values == std::vector<std::string>{""}) continue;  // an older version took it for no value
    for (std::string& value : recorded.values) {
      if (value.find(kReplacement) != std::string::npos)
        fail(Failure::usage, "{}: expected on the command line, as {} has it in bytes that are not UTF-8",
             recorded.name, file.string());
      value = from_directory(*recorded.option, value, directory);
    }
    flags.push_back(std::move(recorded));
  }
  return flags;
}

void refuse_numbers_of_values(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<Given> flags = flags_of(app, arguments);
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--") || argument.find('=') + 1 != argument.size()) continue;
    const std::string name = argument.substr(0, argument.size() - 1);
    if (const CLI::Option* option = app.get_option_no_throw(name); option && needs_value(*option))
      fail(Failure::usage, "{}: expected {}, got nothing after ={}", name, option->get_type_name(), kEmptyValueHint);
  }
  const bool takes_words = std::ranges::any_of(app.get_options(), &CLI::Option::get_positional);
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const Given& flag = flags[i];
    if (flag.option && needs_value(*flag.option) && flag.values.empty())
      fail(Failure::usage, "{}: expected {}, got {}", flag.name, flag.option->get_type_name(),
           i + 1 < flags.size() ? "the flag " + flags[i + 1].name + kEmptyValueHint : "no value");
    if (!takes_words && flag.option && takes_one_value(*flag.option) && flag.values.size() > 1)
      fail(Failure::usage, "{}: expected one value, got {}{}", flag.name, fmt::join(flag.values, " and "),
           hint_of_missing_name(app, flags, flag.values.back()));
    for (std::size_t j = 0; j < i; ++j) {
      const Given& before = flags[j];
      if (!flag.option || flag.option != before.option) continue;
      if (turns_off(flag) != turns_off(before))
        fail(Failure::usage, "{}, {}: expected one of them, got both", before.name, flag.name);
      if (takes_one_value(*flag.option) && !flag.values.empty() && !before.values.empty())
        fail(Failure::usage, "{}: expected one value, got {} and {}", flag.name, before.values.front(),
             flag.values.front());
    }
  }
}

void refuse_switch_values(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (!argument.starts_with("--") || equals == std::string::npos) continue;
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    const CLI::Option* const option = app.get_option_no_throw(name);
    if (!option || option->get_items_expected_max() > 0) continue;
    try {
      CLI::detail::to_flag_value(value);
    } catch (const std::exception&) {  // of several types
      fail(Failure::usage, "{}: expected true or false, got {}", name, io::json_text(value));
    }
  }
}

std::vector<std::string> with_recorded_flags(const CLI::App& app, const std::vector<std::string>& arguments,
                                             Sources& sources) {
  const std::vector<Given> given = flags_of(app, arguments);
  const Given* output = find(given, app.get_option_no_throw("--output"));
  if (!find(given, app.get_option_no_throw("--resume")) || !output || output->values.empty()) return arguments;
  const fs::path file = fs::path(output->values.front()) / "run_config.json";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    // A command with all flags needs no record.
    for (const CLI::Option* option : app.get_options())
      if (option->get_required() && !find(given, option))
        fail(Failure::usage, "--resume: expected a run in {}, got no run_config.json there; hint: is --output right?{}",
             output->values.front(), app.get_option_no_throw("--sweep") ? " Of a sweep give the whole command" : "");
    return arguments;
  }

  const std::vector<Given> recorded = recorded_flags(app, "--resume", file);
  refuse_other_start(app, given, recorded);
  std::vector<std::string> all = arguments;
  for (const Given& flag : unsettled(app, arguments, recorded)) {
    append(all, flag);
    sources[flag.name] = file.string();
  }
  return all;
}

}  // namespace bertrand::cli
