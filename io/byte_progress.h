// What a person sees of a long command: how much of its input is done, MB/s and the time left.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include "io/terminal.h"

namespace bertrand::io {

/// One stage of a command. On a terminal a line that is redrawn; elsewhere a plain line every few seconds.
class ByteProgress {
 public:
  /// `total` is in bytes of input; 0 if it is not known. `quiet`: update() shows nothing.
  ByteProgress(std::string stage, double total, std::FILE* out = stderr, bool quiet = false);

  /// So many bytes are done in all. Throws Error(Failure::interrupted) if leave_requested().
  void update(double done);
  /// So many bytes more.
  void add(std::size_t bytes) { update(done_ += static_cast<double>(bytes)); }
  /// The stage is over: one line that stays.
  void finish();
  bool shown() const { return shown_; }  ///< whether it took long enough for a line

 private:
  std::string text(double done, bool is_finished) const;

  std::string stage_;
  double total_, done_ = 0;  // done_ is that of add()
  TerminalLine line_;
  bool quiet_, shown_ = false;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace bertrand::io
