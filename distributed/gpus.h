// Replicas on several GPUs: NCCL, in a module that is loaded if a run has them.
#pragma once
#include <memory>
#include <string>

#include "distributed/collective.h"
#include "distributed/nccl_place.h"

namespace bertrand::distributed {

class NcclModule {
 public:
  /// Throws Error(Failure::usage) if there is no module or no NCCL. `emulated`: for emulated GPUs, with the stand-in.
  explicit NcclModule(bool emulated);

  /// The id of a new group, which all its replicas must be given.
  std::string new_id() const;
  /// Returns when all replicas of place.id have come. Fills in place.stream. Throws Error(Failure::distributed) if one
  /// does not come or two are on the same GPU.
  std::unique_ptr<Collective> join(NcclPlace place) const;

 private:
  void* (*stream_of_)(Backend& backend) = nullptr;  // of the module that the backends are from
  decltype(&bertrand_nccl_id) id_ = nullptr;
  decltype(&bertrand_join_nccl) join_ = nullptr;
};

}  // namespace bertrand::distributed
