#include "io/units.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

namespace bertrand::io {
namespace {

/// Three digits and the first unit in which they are below 1000.
std::string scaled_text(double value, std::initializer_list<const char*> units) {
  const char* const* unit = units.begin();
  for (; value >= 999.5 && unit + 1 != units.end(); ++unit) value /= 1000;
  return fmt::format("{:.3g}{}", value, *unit);
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto s = static_cast<long long>(seconds + 0.5);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string count_text(double count) { return scaled_text(count, {"", "k", "M", "G", "T"}); }
std::string bytes_text(double bytes) { return scaled_text(bytes, {" B", " kB", " MB", " GB", " TB"}); }

}  // namespace bertrand::io
