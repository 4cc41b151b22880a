// Processes of one run, on one host or several, started together by mpirun or srun.
#pragma once
#include <functional>
#include <string>

#include "distributed/collective.h"

namespace bertrand::distributed {

struct ProcessOptions {
  double timeout = 300;  ///< seconds that a process waits for the others in one call
};

/// What the launcher of this process says of it.
struct Launched {
  int processes = 1;  ///< started together, this one included
  int rank = 0;       ///< which of them this is
};
Launched launched();

/// Prints "warning: …" on standard error, in the first of the processes that were started together: the others have it
/// to say too.
void warn(const std::string& text);

/// Calls `body` with the collective of all processes that were started with this one, for one thread at a time; with
/// null if there is no other. Tensors must be in the host's memory. Its calls throw Error(Failure::distributed) with
/// the name of the process that failed, died or did not come in time. If `body` throws, the others are told so, and
/// with_processes throws the same. Throws Error(Failure::usage) if there are others but this build has no MPI module.
void with_processes(const ProcessOptions& options, const std::function<void(Collective* processes)>& body);

}  // namespace bertrand::distributed
