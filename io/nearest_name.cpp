#include "io/nearest_name.h"

#include <algorithm>

namespace bertrand::io {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& known) {
  // Of a name of two letters one has to be right.
  std::size_t least = std::min(std::max<std::size_t>(2, name.size() / 3) + 1, name.size());
  std::optional<std::string> nearest;
  for (const std::string& candidate : known)
    if (const std::size_t distance = edit_distance(name, candidate); distance < least) {
      least = distance;
      nearest = candidate;
    }
  return nearest;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const auto nearest = nearest_name(name, known);
  return nearest ? "; did you mean " + *nearest + "?" : "";
}

}  // namespace bertrand::io
