// Replicas on several GPUs: NCCL, in a module that is loaded where a run has them.
#pragma once
#include <memory>
#include <string>

#include "distributed/collective.h"
#include "distributed/nccl/place.h"

namespace bertrand::distributed {

class NcclModule {
 public:
  /// Throws Error(Failure::usage) where the module or NCCL is not there. `emulated`: the stand-in, for GPUs that are.
  explicit NcclModule(bool emulated);

  /// The name of a new group, which all its replicas must be told.
  std::string new_id() const;
  /// Returns when all replicas of place.id have come (place.stream is found here); throws Error(Failure::distributed)
  /// where one does not, or where two are on the same GPU.
  std::unique_ptr<Collective> join(NcclPlace place) const;

 private:
  void* (*stream_of_)(Backend& backend) = nullptr;  // of the module that the backends are from
  decltype(&bertrand_nccl_id) id_ = nullptr;
  decltype(&bertrand_join_nccl) join_ = nullptr;
};

}  // namespace bertrand::distributed
