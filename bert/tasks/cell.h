// A cell of a table that is written.
#pragma once
#include <string>

namespace bertrand::tasks {

/// What would break the table becomes a space.
inline std::string cell(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  return text;
}

}  // namespace bertrand::tasks
