// Texts of others, which may be of any length.
#pragma once
#include <string>
#include <string_view>

namespace bertrand::io {

/// `text`, of UTF-8. What is longer than `most` bytes is cut before a character, and "…" says so.
inline std::string shortened(std::string_view text, std::size_t most = 1000) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;  // not within a character
  return std::string(text.substr(0, most)) + "…";
}

}  // namespace bertrand::io
