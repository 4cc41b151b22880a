// TensorBoard's event files, written by hand: TFRecords of Event messages (tensorflow/core/util/event.proto).
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "io/files.h"

namespace bertrand::training {

class EventWriter {
 public:
  /// Creates events.out.tfevents.<time>.<host>.<pid>.<number> in `directory`, under a number that is free.
  explicit EventWriter(const std::filesystem::path& directory, io::Files& files = io::Files::system());

  void scalar(const std::string& tag, std::int64_t step, double value);
  /// Markdown, for the tab "Text".
  void text(const std::string& tag, std::int64_t step, const std::string& markdown);
  /// How the finite ones of the values are distributed: 30 buckets of equal width, for the tab "Histograms".
  void histogram(const std::string& tag, std::int64_t step, std::span<const double> values);
  /// What earlier files of the directory say of `step` and later ones no longer counts.
  void resume(std::int64_t step);

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  void record(const std::string& event);

  io::FileWriter file_;
};

/// "train/loss" for loss, "eval/accuracy" for eval_accuracy, "perf/…" for rates: the names that users of TensorBoard
/// know.
std::string tensorboard_tag(const std::string& metric);

}  // namespace bertrand::training
