// Sums over rows, column by column: the gradient of a bias, and the last step of that of layer normalisation. Blocks of
// rows are summed first, one by each block of threads, then their sums; always in one order.
#pragma once
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.h"

namespace bertrand::cuda {

/// out[column] = Σ over the block's warps, in order, of what each holds for 256 columns from `first` on. A kernel calls
/// it once.
template <class T>
__device__ void store_block(const Pack<T>& mine, Dim first, Dim columns, Compute<T>* out) {
  static_assert(kThreads == kWarpColumns, "a thread for each column that a warp covers");
  __shared__ SharedArray<Compute<T>, kWarps * kWarpColumns * 33 / 32> of_warp;
  const auto at = [](int i) { return i + i / 32; };  // else the eight of a lane would meet those of others in one bank
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = 0; i < kPack; ++i) of_warp[at(warp * kWarpColumns + lane * kPack + i)] = mine[i];
  __syncthreads();
  const Dim column = first + threadIdx.x;
  Compute<T> total = 0;
  for (int w = 0; w < kWarps; ++w) total += of_warp[at(w * kWarpColumns + static_cast<int>(threadIdx.x))];
  if (column < columns) out[column] = total;
}

/// out [1 or 2][columns] = Σ over the rows of x [1 or 2][rows, columns]: blockIdx.y says which. A block takes 32
/// columns: its 32 rows of threads share the rows, then add up their sums pairwise.
template <class T, class To>
__global__ void __launch_bounds__(32 * 32)
    join_blocks_kernel(const T* x, Dim rows, Dim columns, To* first_out, To* second_out) {
  __shared__ SharedArray<Compute<T>, 32 * 32> partial;
  const T* const sums = x + blockIdx.y * rows * columns;
  const Dim column = static_cast<Dim>(blockIdx.x) * 32 + threadIdx.x;
  Compute<T> total = 0;
  if (column < columns)
    for (Dim r = threadIdx.y; r < rows; r += 32) total += load(sums + r * columns + column);
  partial[threadIdx.y * 32 + threadIdx.x] = total;
  for (unsigned step = 16; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.y < step) partial[threadIdx.y * 32 + threadIdx.x] += partial[(threadIdx.y + step) * 32 + threadIdx.x];
  }
  if (threadIdx.y == 0 && column < columns)
    (blockIdx.y == 0 ? first_out : second_out)[column] = convert<To>(static_cast<Compute<T>>(partial[threadIdx.x]));
}

/// out [columns] = Σ of all rows, or two such sums at once.
template <class T, class To>
void join_blocks(const T* x, Dim rows, Dim columns, To* out, cudaStream_t stream, To* second_out = nullptr) {
  launch(join_blocks_kernel<T, To>, dim3(blocks(columns, 32), second_out ? 2 : 1), dim3(32, 32), 0, stream, x, rows,
         columns, out, second_out);
}

}  // namespace bertrand::cuda
