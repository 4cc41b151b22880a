// The CUDA backend, linked into the test program with the emulation that runs its kernels.
#pragma once
#include <memory>

#include "tensor/backend.h"
#include "tensor/cuda/emulation/runtime.h"

extern "C" bertrand::Backend* bertrand_open_cuda(int index);

namespace bertrand::testing {

inline std::unique_ptr<Backend> emulated_card(int index = 0) { return std::unique_ptr<Backend>(bertrand_open_cuda(index)); }

}  // namespace bertrand::testing
