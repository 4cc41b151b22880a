// What a checker of an exercise compares, and how it says what differs. The main of every exercise is in grader.cpp.
#pragma once
#include <string>
#include <vector>

namespace grader {

/// Counts the entries that a checker looks at and keeps a line for each that differs.
class Grader {
 public:
  /// What is computed next; it begins the lines about its entries: "far from 0".
  void begin(std::string what) { what_ = std::move(what); }
  /// One number. It is right within `tolerance` · max(|expected|, `size`), NaN never is. `entry` names it: "entry 3".
  void entry(const std::string& entry, double got, double expected, double tolerance = 1e-12, double size = 1);
  /// All numbers of an array, named "NAME entry 0", "NAME entry 1", …; `name` may be empty.
  void entries(const std::string& name, const std::vector<double>& got, const std::vector<double>& expected,
               double tolerance = 1e-12, double size = 1);
  /// The same bits, as "entry 0" and so on.
  void same_bits(const std::vector<float>& got, const std::vector<float>& expected);
  /// Entries that were found right by other means.
  void right(int entries) { looked_at_ += entries; }
  /// A line about something that is no number.
  void differs(const std::string& line);

  int looked_at() const { return looked_at_; }
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  /// Whether there are as many entries as expected; if not, a line says so.
  bool same_size(const std::string& name, std::size_t got, std::size_t expected);

  std::string what_;
  int looked_at_ = 0;
  std::vector<std::string> differences_;
};

}  // namespace grader

/// Written for each exercise in its check.cpp.
void check(grader::Grader& grader);
/// What to think about if an entry differs.
extern const char* const kHint;
