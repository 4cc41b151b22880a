// Ends a process in which a call of a library never returns, so that the thread that called it cannot look at the
// clock: MPI over TCP after the process at the other end has died, or NCCL and CUDA while GPUs wait for each other.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "distributed/peers.h"

namespace bertrand::distributed {

/// The thread that calls the library says until when it will be back. A thread of the watchdog looks whether it is.
class Watchdog {
 public:
  /// `library`: what does not return, for the line.
  explicit Watchdog(std::string library)
      : library_(std::move(library)), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

  /// Begins to watch. If neither expect() nor rest() is called within `seconds`, this process ends with exit code 8 and
  /// the line "error: <what>: …". If another process can be seen to have died, it ends so after one second.
  void expect(double seconds);
  void rest() { deadline_ = kNever; }
  /// Calls expect() and, at its end, rest().
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
  /// The beginning and the end of the line.
  void set_standing(const std::string& before, const std::string& after);

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::rep;
  static constexpr Time kNever = 0;

  void watch(const std::stop_token& stop);
  [[noreturn]] void end(const std::string& why) const;

  const std::string library_;
  std::atomic<Time> deadline_{kNever}, seen_{0};
  std::mutex mutex_;  // of what follows
  Peers peers_;
  std::string what_, before_, after_;
  std::jthread thread_;
};

}  // namespace bertrand::distributed
