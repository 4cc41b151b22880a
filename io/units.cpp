#include "io/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "io/error.h"

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
  const auto s = std::llround(seconds);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::size_t parse_bytes(const std::string& flag, const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr double kBinary = 1024;
  constexpr Unit kUnits[] = {{"", 1},
                             {"B", 1},
                             {"kB", 1e3},
                             {"KB", 1e3},
                             {"MB", 1e6},
                             {"GB", 1e9},
                             {"TB", 1e12},
                             {"KiB", kBinary},
                             {"MiB", kBinary * kBinary},
                             {"GiB", kBinary * kBinary * kBinary},
                             {"TiB", kBinary * kBinary * kBinary * kBinary}};
  double value = 0;
  const char* const last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, value);
  while (end != last && *end == ' ') ++end;
  const std::string_view name(end, static_cast<std::size_t>(last - end));
  for (const Unit& unit : kUnits)
    if (error == std::errc() && name == unit.name && value * unit.bytes >= 1 && value * unit.bytes < 1e18)
      return static_cast<std::size_t>(value * unit.bytes);
  fail(Failure::usage, "{}: expected a number of bytes as 8GiB, 500MB or 1000000, got \"{}\"", flag, text);
}

std::string count_text(double count) { return scaled_text(count, {"", "k", "M", "G", "T"}); }
std::string bytes_text(double bytes) { return scaled_text(bytes, {" B", " kB", " MB", " GB", " TB"}); }

}  // namespace bertrand::io
