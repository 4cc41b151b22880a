// Losses: forward to one number, backward to every logit.
#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/rows.h"

namespace bertrand::cuda {
namespace {

/// The label of the block's row; negative if it has none, or one that is no class, which is reported.
__device__ std::int32_t label_of_row(const std::int32_t* labels, Dim columns, const IndexCheck& check) {
  const std::int32_t label = labels[blockIdx.x];
  return label < 0 || check.good({static_cast<Dim>(blockIdx.x), label, 0, columns - 1}) ? label : -1;
}

/// A block takes a row; one pass over the vocabulary.
template <class T>
__global__ void cross_entropy_kernel(const T* logits, const std::int32_t* labels, Dim columns, Compute<T>* log_sum,
                                     double* losses, IndexCheck check) {
  const T* const row = logits + blockIdx.x * columns;
  const std::int32_t label = label_of_row(labels, columns, check);
  double loss = 0;
  Compute<T> saved = 0;
  if (label >= 0) {  // the same for the whole block
    const auto [most, total] = exponentials(row, columns);
    const double log_total = static_cast<double>(most) + std::log(static_cast<double>(total));
    saved = static_cast<Compute<T>>(log_total);
    loss = log_total - static_cast<double>(load(row + label));
  }
  if (threadIdx.x == 0) {
    log_sum[blockIdx.x] = saved;
    losses[blockIdx.x] = loss;
  }
}

/// dx = (softmax(x) − one-hot) dy / denominator
template <class T>
__global__ void cross_entropy_backward_kernel(const T* logits, const std::int32_t* labels, Dim columns,
                                              double denominator, const Compute<T>* log_sum, const Compute<T>* dy,
                                              T* dlogits, IndexCheck check) {
  const Dim first = blockIdx.x * columns;
  const std::int32_t label = label_of_row(labels, columns, check);
  const Compute<T> factor = static_cast<Compute<T>>(static_cast<double>(*dy) / denominator),
                   offset = log_sum[blockIdx.x];
  for_row<T>(columns, [&](Dim column, Dim left) {
    Pack<T> pack = load_pack(logits + first + column, left);
    for (int i = 0; i < kPack; ++i)
      pack[i] = label < 0 ? Compute<T>(0) : (std::exp(pack[i] - offset) - (column + i == label ? 1 : 0)) * factor;
    store_pack(dlogits + first + column, left, pack);
  });
}

/// The loss of an output v with target t, and its derivative by v. Compiled for the host too: its compiler names a
/// missing case; nvcc does not.
__host__ __device__ double point_loss_of(PointLoss loss, double v, double t) {
  switch (loss) {
    case PointLoss::squared_error: return (v - t) * (v - t);
    case PointLoss::binary_cross_entropy_with_logits:
      return (v > 0 ? v : 0.0) - v * t + std::log1p(std::exp(-std::abs(v)));
  }
  __builtin_unreachable();
}

__host__ __device__ double point_loss_slope(PointLoss loss, double v, double t) {
  switch (loss) {
    case PointLoss::squared_error: return 2 * (v - t);
    case PointLoss::binary_cross_entropy_with_logits: return 1 / (1 + std::exp(-v)) - t;
  }
  __builtin_unreachable();
}

template <class T>
__global__ void point_loss_kernel(PointLoss loss, const T* x, const T* target, Dim count, double* losses) {
  const Dim i = static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const auto v = static_cast<double>(load(x + i)), t = static_cast<double>(load(target + i));
  losses[i] = point_loss_of(loss, v, t);
}

template <class T>
__global__ void point_loss_backward_kernel(PointLoss loss, const T* x, const T* target, Dim count, double denominator,
                                           const Compute<T>* dy, T* dx) {
  const Dim i = static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const auto v = static_cast<double>(load(x + i)), t = static_cast<double>(load(target + i));
  dx[i] = convert<T>(point_loss_slope(loss, v, t) * (static_cast<double>(*dy) / denominator));
}

/// The first of the greatest: a block takes a row, and equals go to the lower column.
template <class T>
__global__ void argmax_kernel(const T* x, Dim columns, std::int32_t* out) {
  const T* const row = x + blockIdx.x * columns;
  constexpr Compute<T> kLeast = -std::numeric_limits<Compute<T>>::infinity();
  Compute<T> most = kLeast;
  for (Dim c = threadIdx.x; c < columns; c += blockDim.x) most = Most{}(load(row + c), most);
  most = over_block(most, Most{}, kLeast);
  Dim first = columns;
  for (Dim c = threadIdx.x; c < columns && first == columns; c += blockDim.x)
    if (load(row + c) == most) first = c;
  first = -over_block(-first, Most{}, -columns);
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<std::int32_t>(first < columns ? first : 0);
}

}  // namespace

void CudaBackend::cross_entropy(const Tensor& logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                                const Tensor& out) {
  dispatch_real("cross_entropy", logits.dtype(), [&]<class T>() {
    const Dim rows = logits.shape().rows();
    const Workspace losses(*this, rows * static_cast<Dim>(sizeof(double)));
    launch(cross_entropy_kernel<T>, blocks(rows, 1), kThreads, 0, stream(), logits.as<T>(), labels.as<std::int32_t>(),
           logits.shape().columns(), in_compute<T>(log_sum), losses.as<double>(), reports(kLabels));
    finish_sum(losses.as<double>(), rows, 1 / denominator, false, in_compute<T>(out));
  });
}

void CudaBackend::cross_entropy_backward(const Tensor& logits, const Tensor& labels, double denominator,
                                         const Tensor& log_sum, const Tensor& dy, const Tensor& dlogits) {
  dispatch_real("cross_entropy_backward", logits.dtype(), [&]<class T>() {
    launch(cross_entropy_backward_kernel<T>, blocks(logits.shape().rows(), 1), kThreads, 0, stream(), logits.as<T>(),
           labels.as<std::int32_t>(), logits.shape().columns(), denominator, in_compute<T>(log_sum), in_compute<T>(dy),
           dlogits.as<T>(), reports(kLabelsBackward));
  });
}

void CudaBackend::point_loss(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                             const Tensor& out) {
  dispatch_real("point_loss", x.dtype(), [&]<class T>() {
    const Workspace losses(*this, x.elements() * static_cast<Dim>(sizeof(double)));
    launch(point_loss_kernel<T>, blocks(x.elements(), kThreads), kThreads, 0, stream(), loss, x.as<T>(), target.as<T>(),
           x.elements(), losses.as<double>());
    finish_sum(losses.as<double>(), x.elements(), 1 / denominator, false, in_compute<T>(out));
  });
}

void CudaBackend::point_loss_backward(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                                      const Tensor& dy, const Tensor& dx) {
  dispatch_real("point_loss_backward", x.dtype(), [&]<class T>() {
    launch(point_loss_backward_kernel<T>, blocks(x.elements(), kThreads), kThreads, 0, stream(), loss, x.as<T>(),
           target.as<T>(), x.elements(), denominator, in_compute<T>(dy), dx.as<T>());
  });
}

void CudaBackend::argmax(const Tensor& x, const Tensor& out) {
  dispatch_real("argmax", x.dtype(), [&]<class T>() {
    launch(argmax_kernel<T>, blocks(x.shape().rows(), 1), kThreads, 0, stream(), x.as<T>(), x.shape().columns(),
           out.as<std::int32_t>());
  });
}

}  // namespace bertrand::cuda
