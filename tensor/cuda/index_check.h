// How kernels report a number that is out of range: the first thread that finds one records it, the kernel leaves
// out what it would choose, and the next download of this device's numbers throws.
#pragma once
#include "tensor/cuda/platform.h"
#include "tensor/index_check.h"

namespace bertrand::cuda {

/// In the memory of the device.
struct IndexFault {
  unsigned long long kind;  ///< the host's address of an IndexKind; 0: none yet
  BadIndex bad;
};

/// Given to a kernel that chooses by numbers from a tensor.
struct IndexCheck {
  const IndexKind* kind;  ///< the host's; a kernel never follows it
  IndexFault* fault;

  /// Whether bad.value is in its range. If not, it is reported.
  __device__ bool good(const BadIndex& bad) const {
    if (bad.value >= bad.least && bad.value <= bad.most) return true;
    if (atomicCAS(&fault->kind, 0ull, static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(kind))) == 0)
      fault->bad = bad;
    return false;
  }
};

}  // namespace bertrand::cuda
