// Flags with ranges and choices: each says its default in --help and refuses anything else in one line.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "io/choices.h"
#include "io/error.h"
#include "io/nearest_name.h"

namespace bertrand::cli {

/// What a number may be; bounds are part of it.
template <class T>
struct Range {
  T least, most = std::numeric_limits<T>::max();

  std::string text() const {
    return most == std::numeric_limits<T>::max() ? fmt::format("at least {}", least)
                                                 : fmt::format("{} to {}", least, most);
  }
};

/// All of `text` as a number in `range`; a whole one may be written 1e6 too. Throws Error(Failure::usage) naming the
/// flag: not a number, a fraction where none is wanted, nan, out of range.
template <class T>
T parse_number(const std::string& flag, const std::string& text, const Range<T>& range) {
  const auto read = [&text](auto& value) {
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    return error == std::errc{} && end == last;
  };
  T value{};
  bool ok = read(value);
  if constexpr (std::is_integral_v<T>) {
    constexpr double kExact = 1LL << 53;  // up to here every whole number is a double
    double real = 0;
    if (!ok && read(real) && real == std::floor(real) && 0 <= real && real <= kExact &&
        real <= static_cast<double>(std::numeric_limits<T>::max())) {
      value = static_cast<T>(real);
      ok = true;
    }
  }
  if (!ok || !(range.least <= value && value <= range.most))
    fail(Failure::usage, "{}: expected {}, {}, got \"{}\"", flag, std::is_integral_v<T> ? "a whole number" : "a number",
         range.text(), text);
  return value;
}

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

/// --flag NAME, one of `choices`.
template <class T>
CLI::Option* choice_flag(CLI::App& app, const std::string& flag, T& target, const io::Choices<T>& choices,
                         std::string help) {
  std::vector<std::string> names;
  std::string now;
  for (const auto& [name, value] : choices) {
    names.push_back(name);
    if (value == target) now = name;
  }
  help += fmt::format(" ({}; default {})", fmt::join(names, ", "), now);
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
