// Processes of one run, on one host or several, started together by mpirun or srun.
#pragma once
#include <memory>

#include "distributed/collective.h"

namespace bertrand::distributed {

struct ProcessOptions {
  double timeout = 300;  ///< seconds that a process waits for the others in one call
};

/// The collective of all processes that were started with this one, for one thread at a time; null if there is no
/// other. Tensors must be in the host's memory. Its calls throw Error(Failure::distributed) naming the process that
/// failed, died or did not come in time. Throws Error(Failure::usage) if there are others but this build has no MPI
/// module.
std::unique_ptr<Collective> join_processes(const ProcessOptions& options);

}  // namespace bertrand::distributed
