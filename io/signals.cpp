#include "io/signals.h"

#include <unistd.h>
#include <csignal>
#include <initializer_list>

namespace bertrand::io {
namespace {

volatile std::sig_atomic_t stop = 0;

void on_signal(int number) {
  if (stop) _exit(128 + number);
  stop = 1;
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  // SIGUSR1 is what mpirun and Slurm pass on to every process and do not follow by SIGKILL after a second.
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) sigaction(number, &action, nullptr);
}

bool stop_requested() { return stop != 0; }

}  // namespace bertrand::io
