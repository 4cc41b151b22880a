// Base64, as JSON and the tests carry bytes.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace bertrand::io {

inline constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as a text in base64 (RFC 4648), with the = at its end.
inline std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    unsigned bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kBase64Digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// The bytes of a text in base64, with or without the = at its end; nothing if it is none.
inline std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 == 0) text.remove_suffix(text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0);
  if (text.size() % 4 == 1) return {};
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    const std::size_t digit = kBase64Digits.find(c);
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
