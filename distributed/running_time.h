// How long a wait has lasted, in a process that may be stopped and continued meanwhile.
#pragma once
#include <chrono>

namespace bertrand::distributed {

/// Seconds since the beginning, without the time for which this process was stopped: it waits for the others for that
/// much longer. Call seconds() more often than once a second.
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
  static constexpr std::chrono::seconds kStopped{1};  // a longer gap between two calls means so
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

}  // namespace bertrand::distributed
