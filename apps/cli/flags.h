// Flags with ranges and choices: each says its default in --help and refuses anything else in one line.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "io/choices.h"
#include "io/error.h"
#include "io/nearest_name.h"
#include "io/numbers.h"

namespace bertrand::cli {

using io::parse_number;
using io::Range;

/// --flag N, a number in `range`. The value that `target` has now is shown as the default unless `unset` says what an
/// absent flag means.
template <class T>
CLI::Option* number_flag(CLI::App& app, const std::string& flag, T& target, const Range<T>& range, std::string help,
                         const std::string& unset = "") {
  help += fmt::format(" ({}; default {})", range.text(), unset.empty() ? fmt::format("{}", target) : unset);
  return app
      .add_option_function<std::string>(
          flag, [flag, &target, range](const std::string& text) { target = parse_number(flag, text, range); }, help)
      ->type_name(std::is_integral_v<T> ? "INT" : "FLOAT");
}

/// Puts the flags that were added since the last call under a heading of --help.
inline void set_heading(CLI::App& app, const std::string& heading) {
  for (CLI::Option* option : app.get_options())
    if (option->get_group() == "Options" && option != app.get_help_ptr()) option->group(heading);
}

/// --flag NAME, one of `choices`. The one that `target` has now is shown as the default, if it has one.
template <class T>
CLI::Option* choice_flag(CLI::App& app, const std::string& flag, T& target, const io::Choices<T>& choices,
                         std::string help) {
  std::vector<std::string> names;
  std::string now;
  for (const auto& [name, value] : choices) {
    names.push_back(name);
    if (value == target) now = name;
  }
  help += fmt::format(" ({}{})", fmt::join(names, ", "), now.empty() ? "" : "; default " + now);
  const auto parse = [flag, &target, choices, names](const std::string& text) {
    const auto chosen = std::find(names.begin(), names.end(), text);
    if (chosen == names.end())
      fail(Failure::usage, "{}: expected one of {}, got \"{}\"{}", flag, fmt::join(names, ", "), text,
           io::did_you_mean(text, names));
    target = choices[static_cast<std::size_t>(chosen - names.begin())].second;
  };
  return app.add_option_function<std::string>(flag, parse, help)->type_name("NAME");
}

}  // namespace bertrand::cli
