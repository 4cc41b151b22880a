// Reductions of a block: the lanes of a warp by shuffles, the warps through shared memory, always in one order.
#pragma once
#include <limits>

#include "tensor/cuda/numbers.h"

namespace bertrand::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kThreads = 256;  // of a block, by default
inline constexpr int kWarps = kThreads / 32;

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Most {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// combine() over the lanes of a warp; every lane gets the result.
template <class T, class Combine>
__device__ T over_warp(T x, Combine combine) {
  for (int bits = 16; bits > 0; bits /= 2) x = combine(x, __shfl_xor_sync(kAllLanes, x, bits));
  return x;
}
template <class T>
__device__ T warp_sum(T x) {
  return over_warp(x, Sum{});
}

/// combine() over the threads of a block of whole warps along x; every thread gets the result.
template <class T, class Combine>
__device__ T over_block(T x, Combine combine, T neutral) {
  __shared__ SharedArray<T, 32> of_warp;
  const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
  x = over_warp(x, combine);
  if (lane == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  T total = neutral;
  if (lane < warps) total = of_warp[lane];
  total = over_warp(total, combine);
  __syncthreads();  // before the memory is used again
  return total;
}
template <class T>
__device__ T block_sum(T x) {
  return over_block(x, Sum{}, T(0));
}

}  // namespace bertrand::cuda
