// The interface of the module that joins replicas on several GPUs: what it receives, and the functions that it has.
#pragma once
#include <string>

#include "distributed/thread_collective.h"

namespace bertrand::distributed {

/// The place of one replica among the replicas of all processes.
struct NcclPlace {
  ThreadMeeting& meeting;           ///< of the replicas of this process: it tells them that one has failed
  int thread = 0;                   ///< the number of the replica in this process
  Collective* processes = nullptr;  ///< of this run; null if there is one process only
  Backend& backend;                 ///< on a GPU that no other replica uses
  void* stream = nullptr;           ///< in which the backend computes
  std::string id;                   ///< from bertrand_nccl_id(), the same for all replicas
  double timeout = 300;             ///< seconds that a call waits for the others
};

}  // namespace bertrand::distributed

extern "C" {
/// The id of a new group of replicas.
std::string* bertrand_nccl_id();
/// Joins the group of place.id. Returns when all its replicas have come.
bertrand::distributed::Collective* bertrand_join_nccl(const bertrand::distributed::NcclPlace& place);
}
