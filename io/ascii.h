// Letters of ASCII. All other bytes stay as they are, whatever the locale.
#pragma once
#include <string>

namespace bertrand::io {

inline char ascii_lower(char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

inline std::string ascii_lower(std::string text) {
  for (char& c : text) c = ascii_lower(c);
  return text;
}

}  // namespace bertrand::io
