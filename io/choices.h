// A fixed set of names, each with what it stands for.
#pragma once
#include <string>
#include <utility>
#include <vector>

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

/// All names: "a, b, c".
template <class T>
std::string names_of(const Choices<T>& choices) {
  std::string names;
  for (const auto& [name, choice] : choices) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace bertrand::io
