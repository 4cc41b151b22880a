// The one way to start a kernel, and what an error of CUDA's libraries becomes.
#pragma once
#include <string_view>
#include <utility>

#include "io/error.h"
#include "tensor/cuda/platform.h"

namespace bertrand::cuda {

/// Throws Error naming `what` unless the call went well: Failure::memory if the GPU or its driver has none left,
/// else Failure::distributed: its cause is a lost GPU, or an error of an earlier kernel.
inline void check_cuda(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // forgets it: CUB asks after its launches, and would take it for its own
  if (error == cudaErrorMemoryAllocation) fail(Failure::memory, "out of memory: cuda: {}", what);
  fail(Failure::distributed, "cuda: {}: {}", what, cudaGetErrorString(error));
}

/// Blocks of `block` that cover `count`.
inline unsigned blocks(std::int64_t count, std::int64_t block) {
  return static_cast<unsigned>((count + block - 1) / block);
}

/// kernel<<<grid, block, shared_bytes, stream>>>(arguments...), checked; nothing if the grid is empty.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "launch");
}

}  // namespace bertrand::cuda
