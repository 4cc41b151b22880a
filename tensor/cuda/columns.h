// Sums over rows, column by column: what the gradient of a bias is, and the end of layer normalisation's.
#pragma once
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.h"

namespace bertrand::cuda {

inline constexpr Dim kColumnLeafRows = 256;  // rows that one block sums
inline Dim column_leaves(Dim rows) { return (rows + kColumnLeafRows - 1) / kColumnLeafRows; }

/// out[leaf] [columns] = Σ of the leaf's rows of x. A block takes 32 columns: its 32 rows of threads share the rows of the
/// leaf, then add up their sums pairwise.
template <class T, class To>
__global__ void sum_columns_kernel(const T* x, Dim rows, Dim columns, Dim leaf_rows, To* out) {
  __shared__ SharedArray<Compute<T>, 32 * 32> partial;
  const Dim column = static_cast<Dim>(blockIdx.x) * 32 + threadIdx.x;
  const Dim begin = blockIdx.y * leaf_rows, end = begin + leaf_rows < rows ? begin + leaf_rows : rows;
  Compute<T> total = 0;
  if (column < columns)
    for (Dim r = begin + threadIdx.y; r < end; r += 32) total += load(x + r * columns + column);
  partial[threadIdx.y * 32 + threadIdx.x] = total;
  for (unsigned step = 16; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.y < step) partial[threadIdx.y * 32 + threadIdx.x] += partial[(threadIdx.y + step) * 32 + threadIdx.x];
  }
  if (threadIdx.y == 0 && column < columns) out[blockIdx.y * columns + column] = convert<To>(static_cast<Compute<T>>(partial[threadIdx.x]));
}

/// out [columns] = Σ of all rows, by one block for 32 columns.
template <class T, class To>
void sum_columns(const T* x, Dim rows, Dim columns, To* out, cudaStream_t stream) {
  launch(sum_columns_kernel<T, To>, blocks(columns, 32), dim3(32, 32), 0, stream, x, rows, columns, std::max<Dim>(rows, 1), out);
}
/// out [column_leaves(rows), columns]: the sum of each leaf.
template <class T>
void sum_columns_in_leaves(const T* x, Dim rows, Dim columns, Compute<T>* out, cudaStream_t stream) {
  launch(sum_columns_kernel<T, Compute<T>>, dim3(blocks(columns, 32), static_cast<unsigned>(column_leaves(rows))), dim3(32, 32), 0, stream, x, rows, columns,
         kColumnLeafRows, out);
}

}  // namespace bertrand::cuda
