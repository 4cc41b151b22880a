// The CUDA backend, linked into the test program with the emulation that runs its kernels.
#pragma once
#include <memory>

#include "tensor/backends.h"
#include "tensor/cuda/emulation/blas.h"

extern "C" bertrand::Backend* bertrand_open_cuda(const bertrand::CudaOptions& options);

namespace bertrand::testing {

inline std::unique_ptr<Backend> emulated_gpu(const CudaOptions& options = {}) {
  return std::unique_ptr<Backend>(bertrand_open_cuda(options));
}

}  // namespace bertrand::testing
