// Flags with ranges and choices: each says its default in --help and refuses anything else in one line.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/cli/option_values.h"
#include "io/choices.h"
#include "io/numbers.h"
#include "tensor/backends.h"

namespace bertrand::cli {

using io::parse_number;
using io::Range;

template <class T>
concept Number = std::is_arithmetic_v<T>;

/// --flag N, a number in `range`. The value that `target` has now is shown as the default unless `unset` says what an
/// absent flag means.
template <Number T>
CLI::Option* number_flag(CLI::App& app, const std::string& flag, T& target, const Range<T>& range, std::string help,
                         const std::string& unset = "") {
  help += fmt::format(" ({}; default {})", range.text(), unset.empty() ? fmt::format("{}", target) : unset);
  return app
      .add_option_function<std::string>(
          flag, [flag, &target, range](const std::string& text) { target = parse_number(flag, text, range); }, help)
      ->type_name(std::is_integral_v<T> ? "INT" : "FLOAT");
}

/// The same; `help` says the range and what an absent flag means.
template <Number T>
CLI::Option* number_flag(CLI::App& app, const std::string& flag, std::optional<T>& target, const Range<T>& range,
                         const std::string& help) {
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
  const bool has_default = std::ranges::find(choices, target, &std::pair<std::string, T>::second) != choices.end();
  help += fmt::format(" ({}{})", io::names_of(choices), has_default ? "; default " + io::name_in(choices, target) : "");
  CLI::Option* const option = app.add_option_function<std::string>(
      flag, [flag, &target, choices](const std::string& text) { target = io::chosen(flag, text, choices); }, help);
  return set_words(option->type_name("NAME"), io::name_list(choices));
}

/// --cpu-kernels. `result` is what they do not change.
inline void kernels_flag(CLI::App& app, std::string& target, const std::string& result) {
  const std::string help = fmt::format("kernel set; does not change {} ({}; default {})", result,
                                       fmt::join(cpu_kernel_names(), ", "), target);
  set_words(app.add_option("--cpu-kernels", target, help)->type_name("NAME"), cpu_kernel_names());
}

/// --device, one.
inline void device_flag(CLI::App& app, std::string& target) {
  set_words(app.add_option("--device", target, "cpu, cuda or cuda:N")->type_name("NAME")->capture_default_str(),
            {"cpu", "cuda"});
}

}  // namespace bertrand::cli
