// Sums over elements and over rows: leaves of a fixed size, then one block for what they leave. No atomics on numbers
// that round, so that the bits do not depend on which block was first.
#include "tensor/cuda/columns.h"
#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/reduce.h"

namespace bertrand::cuda {
namespace {

constexpr Dim kLeaf = 4 * kPack * kThreads;  // elements that one block sums
constexpr Dim kLeafRows = 256;               // of 256 columns, that one block sums
constexpr int kFinishThreads = 1024;

/// leaves[block] = Σ x, or Σ x², of the block's elements.
template <class T, bool kSquares>
__global__ void leaf_sum_kernel(const T* x, Dim count, double* leaves) {
  Compute<T> total = 0;
  for (int part = 0; part < 4; ++part) {
    const Dim begin = blockIdx.x * kLeaf + (part * kThreads + static_cast<Dim>(threadIdx.x)) * kPack;
    const Pack<T> pack = load_pack(x + begin, count - begin);
    for (int i = 0; i < kPack; ++i) total += kSquares ? pack[i] * pack[i] : pack[i];
  }
  const double sum = block_sum(static_cast<double>(total));
  if (threadIdx.x == 0) leaves[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads)
    finish_sum_kernel(const double* values, Dim count, double factor, bool root, T* out) {
  double total = 0;
  for (Dim i = threadIdx.x; i < count; i += blockDim.x) total += values[i];
  total = block_sum(total) * factor;
  if (threadIdx.x == 0) *out = static_cast<T>(root ? std::sqrt(total) : total);
}

/// leaves[blockIdx.y] [columns] = Σ of the leaf's rows: a warp takes every eighth row, a lane eight of the block's
/// columns.
template <class T>
__global__ void sum_leaf_kernel(const T* x, Dim rows, Dim columns, Compute<T>* leaves) {
  const Dim first = static_cast<Dim>(blockIdx.x) * kWarpColumns, column = first + threadIdx.x % 32 * kPack;
  const Dim begin = blockIdx.y * kLeafRows, end = begin + kLeafRows < rows ? begin + kLeafRows : rows;
  Pack<T> total = {};
  for (Dim row = begin + threadIdx.x / 32; row < end; row += kWarps) {
    const Pack<T> pack = load_pack(x + row * columns + column, columns - column);
    for (int i = 0; i < kPack; ++i) total[i] += pack[i];
  }
  store_leaf<T>(total, first, columns, leaves + blockIdx.y * columns);
}

template <class T>
__global__ void first_non_finite_kernel(const T* x, Dim count, unsigned long long* first) {
  const Dim i = static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count && !std::isfinite(load(x + i))) atomicMin(first, static_cast<unsigned long long>(i));
}

}  // namespace

template <class T>
void CudaBackend::finish_sum(const double* values, Dim count, double factor, bool root, T* out) {
  launch(finish_sum_kernel<T>, 1, kFinishThreads, 0, stream(), values, count, factor, root, out);
}
template void CudaBackend::finish_sum(const double*, Dim, double, bool, float*);
template void CudaBackend::finish_sum(const double*, Dim, double, bool, double*);

void CudaBackend::sum(const Tensor& x, double factor, const Tensor& out) {
  dispatch_real("sum", x.dtype(), [&]<class T>() {
    const unsigned leaves = blocks(x.elements(), kLeaf);
    const Workspace workspace(*this, leaves * static_cast<Dim>(sizeof(double)));
    launch(leaf_sum_kernel<T, false>, leaves, kThreads, 0, stream(), x.as<T>(), x.elements(), workspace.as<double>());
    finish_sum(workspace.as<double>(), leaves, factor, false, in_compute<T>(out));
  });
}

void CudaBackend::norm(const Tensor& x, const Tensor& out) {
  dispatch_real("norm", x.dtype(), [&]<class T>() {
    const unsigned leaves = blocks(x.elements(), kLeaf);
    const Workspace workspace(*this, leaves * static_cast<Dim>(sizeof(double)));
    launch(leaf_sum_kernel<T, true>, leaves, kThreads, 0, stream(), x.as<T>(), x.elements(), workspace.as<double>());
    finish_sum(workspace.as<double>(), leaves, 1.0, true, out.as<double>());
  });
}

void CudaBackend::sum_rows(const Tensor& x, const Tensor& out) {
  dispatch_real("sum_rows", x.dtype(), [&]<class T>() {
    const Dim columns = out.elements();
    if (columns == 0) return;
    const Dim rows = x.elements() / columns, leaves = (rows + kLeafRows - 1) / kLeafRows;
    if (leaves <= 1) return join_leaves(x.as<T>(), rows, columns, out.as<T>(), stream());
    const Workspace workspace(*this, leaves * columns * static_cast<Dim>(sizeof(Compute<T>)));
    launch(sum_leaf_kernel<T>, dim3(blocks(columns, kWarpColumns), static_cast<unsigned>(leaves)), kThreads, 0,
           stream(), x.as<T>(), rows, columns, workspace.as<Compute<T>>());
    join_leaves(workspace.as<Compute<T>>(), leaves, columns, out.as<T>(), stream());
  });
}

Dim CudaBackend::first_non_finite(const Tensor& x) {
  if (!is_floating(x.dtype())) return -1;  // whole numbers are finite
  const Workspace first(*this, sizeof(unsigned long long));
  check_cuda(cudaMemsetAsync(first.as<void>(), 0xff, sizeof(unsigned long long), stream()), "fill");
  dispatch_real("first_non_finite", x.dtype(), [&]<class T>() {
    launch(first_non_finite_kernel<T>, blocks(x.elements(), kThreads), kThreads, 0, stream(), x.as<T>(), x.elements(),
           first.as<unsigned long long>());
  });
  unsigned long long found = 0;
  check_cuda(cudaMemcpyAsync(&found, first.as<void>(), sizeof found, cudaMemcpyDeviceToHost, stream()), "download");
  synchronize();
  return found == ~0ull ? -1 : static_cast<Dim>(found);
}

}  // namespace bertrand::cuda
