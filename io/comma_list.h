// The value of a flag that is a list.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::io {

/// What stands between the commas of `text`: at least one part, and any may be empty.
inline std::vector<std::string> comma_list(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

}  // namespace bertrand::io
