// A fixed set of names, each with what it stands for.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/error.h"
#include "io/nearest_name.h"

namespace bertrand::io {

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

/// The name of `value`; "?" for one that has none.
template <class T>
std::string name_in(const Choices<T>& choices, const T& value) {
  for (const auto& [name, choice] : choices)
    if (choice == value) return name;
  return "?";
}

/// All names.
template <class T>
std::vector<std::string> name_list(const Choices<T>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) names.push_back(name);
  return names;
}

/// All names: "a, b, c".
template <class T>
std::string names_of(const Choices<T>& choices) {
  return fmt::format("{}", fmt::join(name_list(choices), ", "));
}

/// What `name` stands for, if it is one of the names.
template <class T>
std::optional<T> find_choice(const Choices<T>& choices, std::string_view name) {
  for (const auto& [known, choice] : choices)
    if (known == name) return choice;
  return std::nullopt;
}

/// The same. Throws Error(Failure::usage) naming the flag and all names if it is none of them.
template <class T>
T chosen(const std::string& flag, const std::string& name, const Choices<T>& choices) {
  if (const auto choice = find_choice(choices, name)) return *choice;
  fail(Failure::usage, "{}: expected one of {}, got \"{}\"{}", flag, names_of(choices), name,
       did_you_mean(name, name_list(choices)));
}

}  // namespace bertrand::io
