// TensorBoard's event files, written by hand: TFRecords of Event messages (tensorflow/core/util/event.proto).
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace bertrand::training {

class EventWriter {
 public:
  /// Creates events.out.tfevents.<time>.<host>.<pid> in `directory`.
  explicit EventWriter(const std::filesystem::path& directory);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(const std::string& tag, std::int64_t step, double value);
  const std::filesystem::path& path() const { return path_; }

 private:
  void record(const std::string& event);

  std::filesystem::path path_;
  int descriptor_;
};

/// "train/loss" for loss, "eval/accuracy" for eval_accuracy, "perf/…" for rates: the names that users of TensorBoard know.
std::string tensorboard_tag(const std::string& metric);

}  // namespace bertrand::training
