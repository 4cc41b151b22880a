// Numbers in text: what a flag or a field may be, and how it is read.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "io/error.h"

namespace bertrand::io {

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
    bool is_number = !ok && read(real);
    for (const auto& [unit, factor] : {std::pair{'k', 1e3}, {'M', 1e6}, {'G', 1e9}}) {
      if (!text.ends_with(unit)) continue;
      const char* const last = text.data() + text.size() - 1;
      const auto [end, error] = std::from_chars(text.data(), last, real);
      is_number = error == std::errc{} && end == last;
      real *= factor;
    }
    if (is_number && real == std::floor(real) && 0 <= real && real <= kExact &&
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

}  // namespace bertrand::io
