// Processes of one run, on one host or several, started together by mpirun or srun.
#pragma once
#include <functional>

#include "distributed/collective.h"

namespace bertrand::distributed {

struct ProcessOptions {
  double timeout = 300;  ///< seconds that a process waits for the others in one call
};

/// How many processes the launcher says it started together with this one; 1 if none did.
int launched_processes();

/// Calls `body` with the collective of all processes that were started with this one, for one thread at a time; with
/// null if there is no other. Tensors must be in the host's memory. Its calls throw Error(Failure::distributed) with
/// the name of the process that failed, died or did not come in time. If `body` throws, the others are told so, and
/// with_processes throws the same error; in other processes than the first, its text begins with process and host.
/// Throws Error(Failure::usage) if there are others but this build has no MPI module.
void with_processes(const ProcessOptions& options, const std::function<void(Collective* processes)>& body);

}  // namespace bertrand::distributed
