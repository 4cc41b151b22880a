// "did you mean …?": which of the names there are a mistyped one was meant to be.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::io {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (Damerau 1964, Levenshtein 1966).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known`, the first of equals; none if all are too far away to be meant.
std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& known);

/// The end of a message: "; did you mean NAME?", or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace bertrand::io
