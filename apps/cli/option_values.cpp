// Words and paths of an option.
#include "apps/cli/option_values.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include "io/ascii.h"
#include "io/error.h"

namespace bertrand::cli {
namespace {

constexpr const char* kWords = "words";

}  // namespace

/// An option has no place for what its author knows of it but its list of checks. One that is switched off is never
/// run and says nothing in --help.
CLI::Option* set_words(CLI::Option* option, const std::vector<std::string>& words) {
  if (words.empty()) return option;
  std::string list;
  for (const std::string& word : words) list += word + " ";
  return option->check(CLI::Validator(list).name(kWords).active(false));
}

std::vector<std::string> words_of(const CLI::Option& option) {
  // CLI11 2.1 looks for a check in a mutable option only.
  const CLI::Validator* kept = nullptr;
  try {
    kept = const_cast<CLI::Option&>(option).get_validator(kWords);
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
  std::istringstream list(kept->active(true).get_description());
  std::vector<std::string> words;
  for (std::string word; list >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> with_own_spelling(const CLI::App& app, std::vector<std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = std::min(arguments[i].find('='), arguments[i].size());
    const CLI::Option* const option = app.get_option_no_throw(arguments[i].substr(0, equals));
    if (!option || paths_of(*option) != Paths::none) continue;
    const bool apart = equals == arguments[i].size();
    if (apart && i + 1 == arguments.size()) break;
    std::string& argument = arguments[apart ? i + 1 : i];
    const std::size_t begin = apart ? 0 : equals + 1;
    for (const std::string& word : words_of(*option))
      if (io::ascii_lower(word) == io::ascii_lower(argument.substr(begin))) argument.replace(begin, word.size(), word);
  }
  return arguments;
}

Paths paths_of(const CLI::Option& option) {
  const std::string type = option.nonpositional() ? option.get_type_name() : option.get_name(true);
  const auto has = [&type](const char* word) { return type.find(word) != std::string::npos; };
  if (has("FILE") || has("PATH")) return Paths::files;
  return has("DIR") || has("RUN") ? Paths::directories : Paths::none;
}

void refuse_empty_path(const std::string& option, const std::string& path) {
  if (path.empty()) fail(Failure::usage, "{}: expected a path, got an empty one{}", option, kEmptyValueHint);
}

void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    option->check([option](const std::string& value) -> std::string {
      if (paths_of(*option) != Paths::none) refuse_empty_path(option->get_name(), value);
      if (value.empty())
        fail(Failure::usage, "{}: expected {}, got an empty value{}", option->get_name(), option->get_type_name(),
             kEmptyValueHint);
      return "";
    });
}

}  // namespace bertrand::cli
