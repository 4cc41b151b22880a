// metrics.jsonl and TensorBoard's event file: the same figures, one for programs, one for pictures.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io/files.h"
#include "training/report/tensorboard.h"
#include "training/step/objective.h"

namespace bertrand::training {

/// Figures of one step in the order they are to be written.
struct LogLine {
  std::int64_t step = 0;
  Metrics figures;
  std::optional<double> seconds = {};  ///< since this process began to train; TensorBoard has a clock of its own
};

/// A line as JSON: {"step":10,"loss":2.5,"seconds":1.234}. Numbers read back to the same double, or float if they were
/// one; what is not finite becomes null.
std::string json_line(const LogLine& line);

/// Where a run goes on.
struct LogPosition {
  std::int64_t step = 0;        ///< the last one that was made
  bool evaluation_due = false;  ///< after it: the evaluation will be made again, if it was made at all
};

class MetricsLog {
 public:
  /// Appends to `directory`/metrics.jsonl. Lines that will be written again, and what a killed run left of a line, are
  /// dropped first. So TensorBoard is told that what event files of before say of later steps no longer counts. The
  /// run_config.json that is there becomes a text in TensorBoard.
  MetricsLog(const std::filesystem::path& directory, const LogPosition& from, io::Files& files = io::Files::system());

  /// One write a line, so that a killed run leaves whole lines. Throws Error(Failure::io).
  void write(const LogLine& line);
  /// A line of `directory`/samples.jsonl, {"step", "examples"}, and a text in TensorBoard. The file is made for the
  /// first line, and is cut back as metrics.jsonl is.
  void write(std::int64_t step, const Samples& samples);
  EventWriter& events() { return events_; }

 private:
  const std::filesystem::path directory_;
  io::Files& files_;
  io::FileWriter lines_;
  std::optional<io::FileWriter> samples_;
  EventWriter events_;
};

}  // namespace bertrand::training
