#include "io/python_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace bertrand::io {
namespace {

/// The code point at `text[i]`, of valid UTF-8; i moves to its last byte.
char32_t code_point_at(std::string_view text, std::size_t& i) {
  const auto byte = [&](std::size_t at) { return static_cast<char32_t>(static_cast<unsigned char>(text[at])); };
  const char32_t lead = byte(i);
  const int more = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  char32_t c = more == 0 ? lead : lead & (0x3Fu >> more);
  for (int k = 0; k < more && i + 1 < text.size(); ++k) c = (c << 6) | (byte(++i) & 0x3F);
  return c;
}

}  // namespace

std::string python_json(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = code_point_at(text, i);
    switch (c) {
      case '"': out += "\\\""; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      case '\b': out += "\\b"; continue;
      case '\f': out += "\\f"; continue;
      default: break;
    }
    const auto unit = [&](char32_t value) { out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(value)); };
    if (' ' <= c && c < 0x7F) out += static_cast<char>(c);
    else if (c < 0x10000) unit(c);
    else unit(0xD800 + ((c - 0x10000) >> 10)), unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  }
  return out + "\"";
}

std::string python_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char digits[40];
  const double size = std::abs(value);
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value, format).ptr);
  if (!scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace bertrand::io
