// What a person sees of a run: one line redrawn on a terminal, plain lines elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "io/terminal.h"

namespace bertrand::training {

struct ProgressFigures {
  std::int64_t step = 0, total_steps = 0;
  double loss = 0, learning_rate = 0;
  double examples_per_second = 0, tokens_per_second = 0;
  double seconds_left = -1;  ///< below 0: not known yet
  std::size_t memory_bytes = 0;
  std::int64_t skipped_steps = 0;  ///< since the last plain line
};

/// "step 120/1000  12.0%  loss 6.8123  lr 9.20e-05  412 examples/s  51.2k tokens/s  1:02:03 left  1.2 GB"
std::string progress_text(const ProgressFigures& figures);
/// "[####......]"
std::string progress_bar(std::int64_t done, std::int64_t total);

class Progress {
 public:
  explicit Progress(std::FILE* out = stdout) : line_(out) {}

  /// After every step; redraws at most ten times a second, and only on a terminal.
  void update(const ProgressFigures& figures);
  /// Every --log-every steps: a plain line if there is no terminal.
  void log(const ProgressFigures& figures);
  /// A line of its own that stays, on a terminal too.
  void message(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  ProgressFigures with_time_left(ProgressFigures figures) const;

  io::TerminalLine line_;
  Clock::time_point last_{};
  std::optional<Clock::time_point> begin_;  // when the first step that was shown ended
  std::int64_t begin_step_ = 0;
};

}  // namespace bertrand::training
