// Flags with ranges and choices: each says its default in --help and refuses anything else in one line.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tensor/error.h"

namespace bertrand::training {

/// What a number may be; bounds are part of it.
template <class T>
struct Range {
  T least, most = std::numeric_limits<T>::max();

  std::string text() const {
    return most == std::numeric_limits<T>::max() ? fmt::format("at least {}", least)
                                                 : fmt::format("{} to {}", least, most);
  }
};

/// All of `text` as a number in `range`. Throws Error(Failure::usage) naming the flag: not a number, nan, out of range.
template <class T>
T parse_number(const std::string& flag, const std::string& text, const Range<T>& range) {
  T value{};
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last || !(range.least <= value && value <= range.most))
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
      ->type_name("N");
}

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

/// --flag NAME, one of `choices`.
template <class T>
CLI::Option* choice_flag(CLI::App& app, const std::string& flag, T& target, const Choices<T>& choices,
                         std::string help) {
  std::vector<std::string> names;
  std::string now;
  for (const auto& [name, value] : choices) {
    names.push_back(name);
    if (value == target) now = name;
  }
  help += fmt::format(" ({}; default {})", fmt::join(names, ", "), now);
  const auto parse = [flag, &target, choices, names](const std::string& text) {
    for (const auto& [name, value] : choices)
      if (name == text) {
        target = value;
        return;
      }
    fail(Failure::usage, "{}: expected one of {}, got \"{}\"", flag, fmt::join(names, ", "), text);
  };
  return app.add_option_function<std::string>(flag, parse, help)->type_name("NAME");
}

}  // namespace bertrand::training
