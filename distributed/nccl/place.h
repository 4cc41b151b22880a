// What the module that joins replicas on several GPUs is told, and the two functions that the loader looks up in it.
#pragma once
#include <string>

#include "distributed/thread_collective.h"

namespace bertrand::distributed {

/// Where one replica stands among those of all processes.
struct NcclPlace {
  ThreadMeeting& meeting;           ///< of this process's replicas: tells them that one has failed
  int thread = 0;                   ///< of them
  Collective* processes = nullptr;  ///< of this run, or null where this is the only one
  Backend& backend;                 ///< on a GPU that no other replica uses
  void* stream = nullptr;           ///< that the backend computes in
  std::string id;                   ///< from bertrand_nccl_id() of one process, for all
  double timeout = 300;             ///< seconds that a call waits for the others
};

}  // namespace bertrand::distributed

extern "C" {
/// A name for a new group of replicas.
std::string* bertrand_nccl_id();
/// Joins it: returns when all have come.
bertrand::distributed::Collective* bertrand_join_nccl(const bertrand::distributed::NcclPlace& place);
}
