#include "distributed/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <utility>

#include "io/error.h"

namespace bertrand::distributed {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kPatience{1};  // with a call after another process has died

}  // namespace

void Watchdog::expect(double seconds) {
  const Clock::time_point now = Clock::now();
  seen_ = now.time_since_epoch().count();
  deadline_ = (now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)))
                  .time_since_epoch()
                  .count();
}

void Watchdog::set_peers(const Peers& peers) {
  const std::lock_guard lock(mutex_);
  peers_ = peers;
}

void Watchdog::set_call(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
}

void Watchdog::set_standing(const std::string& before, const std::string& after) {
  const std::lock_guard lock(mutex_);
  before_ = before;
  after_ = after;
}

void Watchdog::watch(const std::stop_token& stop) {
  Time looked_at = Clock::now().time_since_epoch().count();
  std::mutex mutex;
  std::unique_lock resting(mutex);
  std::condition_variable_any stopped;
  for (; !stop.stop_requested(); stopped.wait_for(resting, stop, kLook, [] { return false; })) {
    const Time now = Clock::now().time_since_epoch().count(), gap = now - std::exchange(looked_at, now);
    Time deadline = deadline_;
    const Time seen = seen_;
    if (deadline == kNever) continue;
    // If the whole process was stopped, it gets the time that it lost.
    if (gap > Clock::duration(kPatience).count()) {
      deadline_.compare_exchange_strong(deadline, deadline + gap);
      seen_ = now;
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (now > deadline) end(library_ + " has not returned in time");
    if (now - seen < Clock::duration(kPatience).count()) continue;
    if (const int dead = peers_.first_dead(); dead >= 0)
      end(peers_.name(dead) + " has died, and " + library_ + " does not return");
  }
}

void Watchdog::end(const std::string& why) const {
  const std::string line = fmt::format("error: {}{}: {}{}\n", before_, what_, why, after_);
  // No streams and no destructors: the thread that is stuck may hold their locks.
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(static_cast<int>(Failure::distributed));
}

}  // namespace bertrand::distributed
