// Softmax over the last axis: a block takes a row.
#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/rows.h"

namespace bertrand::cuda {
namespace {

template <class T>
__global__ void softmax_kernel(const T* x, Dim columns, T* y) {
  const T* const row = x + blockIdx.x * columns;
  const auto [most, total] = exponentials(row, columns);
  for_row<T>(columns, [&](Dim column, Dim left) {
    Pack<T> pack = load_pack(row + column, left);
    for (int i = 0; i < kPack; ++i) pack[i] = std::exp(pack[i] - most) / total;
    store_pack(y + blockIdx.x * columns + column, left, pack);
  });
}

/// dx = y (dy − Σ y dy)
template <class T>
__global__ void softmax_backward_kernel(const T* y, const T* dy, Dim columns, T* dx) {
  const Dim first = blockIdx.x * columns;
  Compute<T> dot = 0;
  for_row<T>(columns, [&](Dim column, Dim left) {
    const Pack<T> a = load_pack(y + first + column, left), b = load_pack(dy + first + column, left);
    for (int i = 0; i < kPack; ++i) dot += a[i] * b[i];
  });
  dot = block_sum(dot);
  for_row<T>(columns, [&](Dim column, Dim left) {
    const Pack<T> a = load_pack(y + first + column, left);
    Pack<T> b = load_pack(dy + first + column, left);
    for (int i = 0; i < kPack; ++i) b[i] = a[i] * (b[i] - dot);
    store_pack(dx + first + column, left, b);
  });
}

}  // namespace

void CudaBackend::softmax(const Tensor& x, const Tensor& y) {
  if (x.elements() == 0) return;
  dispatch_real("softmax", x.dtype(), [&]<class T>() {
    launch(softmax_kernel<T>, blocks(x.shape().rows(), 1), kThreads, 0, stream(), x.as<T>(), x.shape().columns(),
           y.as<T>());
  });
}

void CudaBackend::softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  if (y.elements() == 0) return;
  dispatch_real("softmax_backward", y.dtype(), [&]<class T>() {
    launch(softmax_backward_kernel<T>, blocks(y.shape().rows(), 1), kThreads, 0, stream(), y.as<T>(), dy.as<T>(),
           y.shape().columns(), dx.as<T>());
  });
}

}  // namespace bertrand::cuda
