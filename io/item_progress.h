// What a person sees of work on many items: how many are done, how many a second, and the time left.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "io/terminal.h"

namespace bertrand::io {

/// On a terminal a line that is redrawn; elsewhere a plain line every few seconds.
class ItemProgress {
 public:
  /// `what` is done to the items: "predicting". `total` 0: it is not known how many there are.
  ItemProgress(std::string what, std::int64_t total, std::FILE* out = stderr);

  /// Work begins here; `done` items were done before.
  void begin(std::int64_t done);
  /// So many are done in all.
  void update(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  std::int64_t total_, before_ = 0;
  TerminalLine line_;
  Clock::time_point begin_;
};

}  // namespace bertrand::io
