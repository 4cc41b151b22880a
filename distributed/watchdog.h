// What ends a process that MPI does not give back: over TCP a call may never return once the process at the other end
// has died, and then nobody looks at the clock.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "distributed/mpi/peers.h"

namespace bertrand::distributed {

/// The thread that calls MPI says where it is; a thread that never does looks whether it comes back.
class Watchdog {
 public:
  Watchdog() : thread_([this](const std::stop_token& stop) { watch(stop); }) {}

  /// From now on until rest(): unless the caller is here again within `seconds`, or within one where another process
  /// can be seen to have died, this process ends with exit code 8 and the line "error: <what>: …".
  void expect(double seconds);
  void rest() { deadline_ = kNever; }
  /// Expects, and rests when it goes.
  class Watch {
   public:
    Watch(Watchdog& watchdog, double seconds) : watchdog_(watchdog) { watchdog_.expect(seconds); }
    ~Watch() { watchdog_.rest(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Watchdog& watchdog_;
  };

  void set_peers(const Peers& peers);
  void set_call(const std::string& what);
  /// What the line begins and ends with.
  void set_standing(const std::string& before, const std::string& after);

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::rep;
  static constexpr Time kNever = 0;

  void watch(const std::stop_token& stop);
  [[noreturn]] void end(const std::string& why) const;

  std::atomic<Time> deadline_{kNever}, seen_{0};
  std::mutex mutex_;  // of what follows
  Peers peers_;
  std::string what_, before_, after_;
  std::jthread thread_;
};

}  // namespace bertrand::distributed
