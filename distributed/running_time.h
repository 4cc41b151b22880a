// How long a wait has lasted for a process that may be stopped in it and go on.
#pragma once
#include <chrono>

namespace bertrand::distributed {

/// Seconds since the beginning, without the time for which this process did not run: the others get what it lost.
/// Whoever waits asks more often than once a second.
class RunningTime {
 public:
  void restart() { begin_ = last_ = Clock::now(); }
  double seconds() {
    const Clock::time_point now = Clock::now();
    if (now - last_ > kStopped) begin_ += now - last_;
    last_ = now;
    return std::chrono::duration<double>(now - begin_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kStopped{1};  // without being asked
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

}  // namespace bertrand::distributed
