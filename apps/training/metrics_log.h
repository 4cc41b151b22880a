// metrics.jsonl and TensorBoard's event file: the same figures, one for programs, one for pictures.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bertrand::training {

/// Figures of one step in the order they are to be written.
struct LogLine {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> figures;
};

/// A line as JSON: {"step":10,"loss":2.5}. Numbers read back to the same double, or float where they were one; what is
/// not finite becomes null.
std::string json_line(const LogLine& line);

class MetricsLog {
 public:
  /// Appends to `directory`/metrics.jsonl. Lines after `resumed_step` are dropped first: they will be written again.
  MetricsLog(const std::filesystem::path& directory, std::int64_t resumed_step);
  ~MetricsLog();

  /// One write a line, so that a killed run leaves whole lines.
  void write(const LogLine& line);

 private:
  struct Sinks;
  std::unique_ptr<Sinks> sinks_;
};

}  // namespace bertrand::training
