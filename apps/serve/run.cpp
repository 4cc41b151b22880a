// The program around the service.
#include "apps/serve/run.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "io/say.h"
#include "io/signals.h"
#include "serving/health_check.h"

namespace bertrand::serve {
namespace {

/// As many connections as the system lets this process have; every one is a file to it.
std::size_t most_connections(std::size_t wanted) {
  constexpr std::size_t kOtherFiles = 64;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  getrlimit(RLIMIT_NOFILE, &files);
  return std::clamp<std::size_t>(files.rlim_cur, kOtherFiles + 1, kOtherFiles + wanted) - kOtherFiles;
}

}  // namespace

void run(const Options& options) {
  if (!options.check.empty()) return serving::require_healthy(options.check);
  serving::ServiceOptions complete_options = complete(options);
  complete_options.http.max_connections = most_connections(complete_options.http.max_connections);
  io::catch_stop_signals(io::OnStop::leave);  // while nobody is answered
  serving::Service service(complete_options);
  cli::refuse_flags_of_others(options.own_flags, service.heads());
  io::tell("{}", service.memory_plan());
  fmt::print("listening on {}\n", service.url());
  std::fflush(stdout);
  service.run();
}

}  // namespace bertrand::serve
