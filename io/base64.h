// Base64, as JSON and the tests carry bytes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace bertrand::io {

/// The bytes of a text in base64, with or without the = at its end; nothing if it is none.
inline std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 == 0) text.remove_suffix(text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0);
  if (text.size() % 4 == 1) return {};
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return {};
    bits = bits << 6 | static_cast<unsigned>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

}  // namespace bertrand::io
