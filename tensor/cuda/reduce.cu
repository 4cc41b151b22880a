// Sums over elements and over rows: first blocks of a fixed size, then one block of threads adds up their sums. No
// atomics on numbers that are rounded, so that the bits do not depend on which block was first.
#include "tensor/cuda/columns.h"
#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/reduce.h"

namespace bertrand::cuda {
namespace {

constexpr Dim kBlockElements = 4 * kPack * kThreads;  // elements that one block of threads sums
constexpr Dim kBlockRows = 256;                       // the same for rows, in 256 columns
constexpr int kFinishThreads = 1024;

/// sums[block] = Σ x, or Σ x², of the block's elements.
template <class T, bool kSquares>
__global__ void sum_block_kernel(const T* x, Dim count, double* sums) {
  Compute<T> total = 0;
  for (int part = 0; part < 4; ++part) {
    const Dim begin = blockIdx.x * kBlockElements + (part * kThreads + static_cast<Dim>(threadIdx.x)) * kPack;
    const Pack<T> pack = load_pack(x + begin, count - begin);
    for (int i = 0; i < kPack; ++i) total += kSquares ? pack[i] * pack[i] : pack[i];
  }
  const double sum = block_sum(static_cast<double>(total));
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads)
    finish_sum_kernel(const double* values, Dim count, double factor, bool root, T* out) {
  double total = 0;
  for (Dim i = threadIdx.x; i < count; i += blockDim.x) total += values[i];
  total = block_sum(total) * factor;
  if (threadIdx.x == 0) *out = static_cast<T>(root ? std::sqrt(total) : total);
}

/// sums[blockIdx.x] [columns] = Σ of the block's rows: a warp takes every eighth row, a lane eight of the block's
/// columns.
template <class T>
__global__ void sum_rows_kernel(const T* x, Dim rows, Dim columns, Compute<T>* sums) {
  const Dim first = static_cast<Dim>(blockIdx.y) * kWarpColumns, column = first + threadIdx.x % 32 * kPack;
  const Dim begin = blockIdx.x * kBlockRows, end = begin + kBlockRows < rows ? begin + kBlockRows : rows;
  Pack<T> total = {};
  for (Dim row = begin + threadIdx.x / 32; row < end; row += kWarps) {
    const Pack<T> pack = load_pack(x + row * columns + column, columns - column);
    for (int i = 0; i < kPack; ++i) total[i] += pack[i];
  }
  store_block<T>(total, first, columns, sums + blockIdx.x * columns);
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
    const unsigned count = blocks(x.elements(), kBlockElements);
    const Workspace workspace(*this, count * static_cast<Dim>(sizeof(double)));
    launch(sum_block_kernel<T, false>, count, kThreads, 0, stream(), x.as<T>(), x.elements(), workspace.as<double>());
    finish_sum(workspace.as<double>(), count, factor, false, in_compute<T>(out));
  });
}

void CudaBackend::norm(const Tensor& x, const Tensor& out) {
  dispatch_real("norm", x.dtype(), [&]<class T>() {
    const unsigned count = blocks(x.elements(), kBlockElements);
    const Workspace workspace(*this, count * static_cast<Dim>(sizeof(double)));
    launch(sum_block_kernel<T, true>, count, kThreads, 0, stream(), x.as<T>(), x.elements(), workspace.as<double>());
    finish_sum(workspace.as<double>(), count, 1.0, true, out.as<double>());
  });
}

void CudaBackend::sum_rows(const Tensor& x, const Tensor& out) {
  dispatch_real("sum_rows", x.dtype(), [&]<class T>() {
    const Dim columns = out.elements();
    if (columns == 0) return;
    const Dim rows = x.elements() / columns, row_blocks = (rows + kBlockRows - 1) / kBlockRows;
    if (row_blocks <= 1) return join_blocks(x.as<T>(), rows, columns, out.as<T>(), stream());
    const Workspace workspace(*this, row_blocks * columns * static_cast<Dim>(sizeof(Compute<T>)));
    launch(sum_rows_kernel<T>, dim3(static_cast<unsigned>(row_blocks), blocks(columns, kWarpColumns)), kThreads, 0,
           stream(), x.as<T>(), rows, columns, workspace.as<Compute<T>>());
    join_blocks(workspace.as<Compute<T>>(), row_blocks, columns, out.as<T>(), stream());
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
  check_cuda(cudaMemcpyAsync(&found, first.as<void>(), sizeof found, cudaMemcpyDeviceToHost, stream_for("a download")),
             "download");
  synchronize();
  return found == ~0ull ? -1 : static_cast<Dim>(found);
}

}  // namespace bertrand::cuda
