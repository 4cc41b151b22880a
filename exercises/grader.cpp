#include "grader.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>

namespace grader {
namespace {

std::string shown(double value) {
  if (std::isnan(value)) return "nan";  // printf has -nan too
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace

void Grader::differs(const std::string& line) { differences_.push_back(what_ + ": " + line); }

void Grader::entry(const std::string& entry, double got, double expected, double tolerance, double size) {
  ++looked_at_;
  if (got == expected || std::abs(got - expected) <= tolerance * std::max(std::abs(expected), size)) return;
  differs(entry + ": got " + shown(got) + ", expected " + shown(expected));
}

bool Grader::same_size(const std::string& name, std::size_t got, std::size_t expected) {
  if (got == expected) return true;
  ++looked_at_;
  differs(name + "got " + std::to_string(got) + " entries, expected " + std::to_string(expected));
  return false;
}

void Grader::entries(const std::string& name, const std::vector<double>& got, const std::vector<double>& expected,
                     double tolerance, double size) {
  const std::string before = name.empty() ? "" : name + " ";
  if (!same_size(before, got.size(), expected.size())) return;
  for (std::size_t i = 0; i < got.size(); ++i)
    entry(before + "entry " + std::to_string(i), got[i], expected[i], tolerance, size);
}

void Grader::same_bits(const std::vector<float>& got, const std::vector<float>& expected) {
  if (!same_size("", got.size(), expected.size())) return;
  for (std::size_t i = 0; i < got.size(); ++i)
    entry("entry " + std::to_string(i), got[i], expected[i], /*tolerance=*/0);
}

}  // namespace grader

/// usage: exercise_NAME; exits with 0 if the exercise is right, else with 1.
int main() {
  grader::Grader grader;
  try {
    check(grader);
  } catch (const std::exception& error) {
    grader.differs(std::string("it threw: ") + error.what());
  }
  const auto& differences = grader.differences();
  if (differences.empty()) {
    std::printf("right: %d entries\n", grader.looked_at());
    return 0;
  }
  constexpr std::size_t kMost = 8;
  std::printf("not right yet: %zu of %d entries differ\n", differences.size(), grader.looked_at());
  for (std::size_t i = 0; i < std::min(kMost, differences.size()); ++i) std::printf("  %s\n", differences[i].c_str());
  if (differences.size() > kMost) std::printf("  … and %zu more\n", differences.size() - kMost);
  std::printf("hint: %s\n", kHint);
  return 1;
}
