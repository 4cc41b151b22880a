// A name that is a number, as versions of a model have.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bertrand::io {

/// All of `text` as a number of at least 0; none if it is anything else.
inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return {};
  return number;
}

}  // namespace bertrand::io
