// UTF-8 by hand: decoding, encoding, and leaving out what is invalid exactly as Python does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::text {

/// Bytes of a text that were no UTF-8 and were left out, as Python's errors="ignore" does.
struct DroppedBytes {
  std::size_t count = 0;
  std::size_t first = 0;  ///< offset of the first one in the text, if count > 0
};

/// The same of a text of many lines, some of which may be looked at by other threads.
struct InvalidBytes {
  std::uint64_t count = 0;
  std::uint64_t first_line = 0;    ///< from 1, if count > 0
  std::uint64_t first_column = 0;  ///< in bytes, from 1, if count > 0

  /// Adds what was left out of a line, counted from 1.
  void add(const DroppedBytes& dropped, std::uint64_t line);
  /// Adds what was found in a part that begins after `lines_before` lines.
  void add(const InvalidBytes& part, std::uint64_t lines_before);
  /// What to tell who gave the text: "FILE:LINE: text: dropped …", or another verb if some of it was refused.
  std::string message(const std::string& file, std::string_view verb = "dropped") const;
};

/// `text` is valid UTF-8.
std::int64_t count_code_points(std::string_view text);

/// Whether every byte is below 128.
bool is_ascii(std::string_view text);

/// The code point at `p`, which points at valid UTF-8; advances `p` past it.
inline char32_t decode_utf8(const char*& p) {
  const auto payload = [&] { return static_cast<char32_t>(static_cast<unsigned char>(*p++)) & 0x3F; };
  const char32_t lead = static_cast<unsigned char>(*p++);
  if (lead < 0x80) return lead;
  char32_t code_point = lead < 0xE0 ? lead & 0x1F : lead < 0xF0 ? lead & 0x0F : lead & 0x07;
  code_point = (code_point << 6) | payload();
  if (lead >= 0xE0) code_point = (code_point << 6) | payload();
  if (lead >= 0xF0) code_point = (code_point << 6) | payload();
  return code_point;
}

/// Where the character begins that ends at `end`, which is above 0.
inline std::size_t place_before(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && (text[end] & 0xC0) == 0x80);
  return end;
}

/// Writes a code point as UTF-8 at `out`, which has room for 4 bytes; returns the end.
inline char* encode_utf8(char32_t c, char* out) {
  const auto put = [&](char32_t byte) { *out++ = static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6)), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3F)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
  }
  return out;
}

/// Finds what is not UTF-8 in the sense of CPython's decoder (no overlong forms, no surrogates, nothing above U+10FFFF;
/// an invalid sequence is its longest well-formed beginning, or one byte). If there is any, `valid` becomes the text
/// without it and the return value counts it; otherwise `valid` is left alone. `gaps` gets, at its end, the offsets in
/// `valid` of what came behind something that was left out, ascending.
DroppedBytes drop_invalid_utf8(std::string_view text, std::string& valid, std::vector<std::size_t>* gaps = nullptr);
/// The same of a text of many lines.
InvalidBytes drop_invalid_lines(std::string_view text, std::string& valid, std::vector<std::size_t>* gaps = nullptr);

/// Whether something was left out between the offsets, or beside one of them.
bool has_gap(std::span<const std::size_t> gaps, std::size_t begin, std::size_t end);

}  // namespace bertrand::text
