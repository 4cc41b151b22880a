#include "io/signals.h"

#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <initializer_list>

#include "io/error.h"

namespace bertrand::io {
namespace {

std::atomic<std::int64_t> first_signal = 0;  // when it came, in nanoseconds of CLOCK_MONOTONIC; 0: none
std::atomic<bool> leave;
std::atomic<int> leave_requests = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);  // else a handler may not use it

void on_signal(int number) {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  std::int64_t before = 0;
  if (first_signal.compare_exchange_strong(before, now)) return;
  if (std::chrono::nanoseconds(now - before) > kSameRequest) ::_exit(128 + number);
}

}  // namespace

void catch_stop_signals(OnStop on_stop) {
  leave = on_stop == OnStop::leave;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  // SIGUSR1 is what mpirun and Slurm pass on to every process and do not follow by SIGKILL after a second.
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) sigaction(number, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() { return first_signal != 0; }

bool leave_requested() { return leave_requests > 0 || (leave && stop_requested()); }

LeaveRequest::LeaveRequest() { ++leave_requests; }
LeaveRequest::~LeaveRequest() { --leave_requests; }

void leave_if_requested(std::string_view doing) {
  if (leave_requested())
    fail(Failure::interrupted, "interrupted while {}: nothing was written; hint: run the command again", doing);
}

}  // namespace bertrand::io
