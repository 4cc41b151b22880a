#include "io/signals.h"

#include <unistd.h>
#include <atomic>
#include <csignal>
#include <initializer_list>

#include "io/error.h"

namespace bertrand::io {
namespace {

volatile std::sig_atomic_t stop = 0;
std::atomic<bool> leave = false;

void on_signal(int number) {
  if (stop) _exit(128 + number);
  stop = 1;
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

bool stop_requested() { return stop != 0; }

bool leave_requested() { return leave && stop_requested(); }

void leave_if_requested(std::string_view doing) {
  if (leave_requested())
    fail(Failure::interrupted, "interrupted while {}: nothing was written; hint: run the command again", doing);
}

}  // namespace bertrand::io
