// Numbers in text: what a flag or a field may be, and how it is read.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "io/error.h"

namespace bertrand::io {

/// All of `text` as a number; none if it is anything else, or out of the range of T.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end != last) return {};
  return number;
}

/// All of `text` as a number of at least 0, as versions of a model are; none if it is anything else.
inline std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto number = number_in<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// What a number may be; bounds are part of it.
template <class T>
struct Range {
  T least, most = std::numeric_limits<T>::max();

  std::string text() const {
    return most == std::numeric_limits<T>::max() ? fmt::format("at least {}", least)
                                                 : fmt::format("{} to {}", least, most);
  }
};

/// All of `text` as a number in `range`. A whole number may be written 1e6, 1000k or 1M too. Throws
/// Error(Failure::usage) naming the flag if it is not a number, a fraction if none is wanted, nan, or out of range.
template <class T>
T parse_number(const std::string& flag, const std::string& text, const Range<T>& range) {
  std::optional<T> value = number_in<T>(text);
  if constexpr (std::is_integral_v<T>) {
    // Up to the first every whole number is a double; the second is no whole number.
    constexpr double kExact = 1LL << 53, kNone = std::numeric_limits<double>::quiet_NaN();
    double real = value ? kNone : number_in<double>(text).value_or(kNone);
    for (const auto& [unit, factor] : {std::pair{'k', 1e3}, {'M', 1e6}, {'G', 1e9}})
      if (text.ends_with(unit))
        real = factor * number_in<double>(std::string_view(text).substr(0, text.size() - 1)).value_or(kNone);
    if (real == std::floor(real) && 0 <= real && real <= kExact &&
        real <= static_cast<double>(std::numeric_limits<T>::max()))
      value = static_cast<T>(real);
  }
  if (!value || !(range.least <= *value && *value <= range.most))
    fail(Failure::usage, "{}: expected {}, {}, got \"{}\"", flag, std::is_integral_v<T> ? "a whole number" : "a number",
         range.text(), text);
  return *value;
}

}  // namespace bertrand::io
