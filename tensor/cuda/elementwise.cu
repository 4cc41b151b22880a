// Kernels that look at one element at a time; a thread takes a pack of eight.
#include <cmath>

#include "tensor/cuda/columns.h"
#include "tensor/cuda/dropout.h"

namespace bertrand::cuda {
namespace {

/// First element of this thread's pack.
__device__ Dim pack_begin() { return (static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack; }

unsigned pack_blocks(Dim count) { return blocks(count, kThreads * kPack); }

// nvcc does not report a missing case of a switch. The compiler of the host does, in functions that are instantiated
// for the host too.
template <class R>
__host__ __device__ R apply(Unary op, R x) {
  switch (op) {
    case Unary::relu: return x > 0 ? x : x < 0 ? R(0) : x;  // NaN stays NaN
    case Unary::tanh: return std::tanh(x);
    case Unary::gelu: return x * R(0.5) * (1 + std::erf(x * R(0.70710678118654752440)));
    case Unary::gelu_tanh:
      return x * R(0.5) * (1 + std::tanh(R(0.79788456080286535588) * (x + R(0.044715) * x * x * x)));
    case Unary::exp: return std::exp(x);
    case Unary::log: return std::log(x);
    case Unary::sqrt: return std::sqrt(x);
    case Unary::neg: return -x;
    case Unary::identity: return x;
  }
  __builtin_unreachable();
}

template <class R>
__host__ __device__ R slope(Unary op, R x) {
  switch (op) {
    case Unary::relu: return x > 0 ? R(1) : R(0);
    case Unary::tanh: {
      const R y = std::tanh(x);
      return 1 - y * y;
    }
    case Unary::gelu: {  // Φ(x) + x φ(x)
      const R cumulative = R(0.5) + R(0.5) * std::erf(x * R(0.70710678118654752440));
      return cumulative + x * R(0.39894228040143267794) * std::exp(R(-0.5) * x * x);
    }
    case Unary::gelu_tanh: {  // with t = tanh(u): 0.5 (1 + t) + 0.5 x (1 − t²) u′
      const R t = std::tanh(R(0.79788456080286535588) * (x + R(0.044715) * x * x * x));
      const R du = R(0.79788456080286535588) * (1 + R(3 * 0.044715) * std::fmin(x * x, R(1e30)));  // else 0 · ∞ far out
      return R(0.5) * (1 + t) + R(0.5) * x * (1 - t * t) * du;
    }
    case Unary::exp: return std::exp(x);
    case Unary::log: return 1 / x;
    case Unary::sqrt: return R(0.5) / std::sqrt(x);
    case Unary::neg: return R(-1);
    case Unary::identity: return R(1);
  }
  __builtin_unreachable();
}

template <class R>
__host__ __device__ R combine(Binary op, R a, R b) {
  switch (op) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::div: return a / b;
  }
  __builtin_unreachable();
}

/// Φ(x), and e^(-x²/2).
struct Normal {
  float cumulative, exponential;
};
/// Within 1e-7, with the exponential that the slope of GELU needs too (Abramowitz and Stegun 1964, 7.1.26). Of Φ(−4),
/// which is 3e-5, three digits are right.
__device__ Normal quick_normal(float x) {
  constexpr float kInverseRoot2 = 0.70710678f, kHalfLog2E = 0.72134752f;
  const float t = quick_reciprocal(1 + 0.3275911f * kInverseRoot2 * std::fabs(x));
  const float exponential = quick_exp2(-kHalfLog2E * x * x);
  const float series =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float beyond = 0.5f * series * exponential;  // Φ(−|x|)
  return {x < 0 ? beyond : 1 - beyond, exponential};
}

/// apply and slope of an element of T. In half types BERT's GELU takes quick_normal: its error is below their rounding
/// but for x far below 0, where GELU is nearly 0.
template <class T>
__device__ Compute<T> apply_to(Unary op, Compute<T> x) {
  if constexpr (sizeof(T) == 2)
    if (op == Unary::gelu) return x * quick_normal(x).cumulative;
  return apply(op, x);
}
template <class T>
__device__ Compute<T> slope_at(Unary op, Compute<T> x) {
  if constexpr (sizeof(T) == 2)
    if (op == Unary::gelu) {
      const Normal normal = quick_normal(x);
      return normal.cumulative + x * 0.39894228f * normal.exponential;
    }
  return slope(op, x);
}

template __host__ __device__ float apply(Unary, float);
template __host__ __device__ float slope(Unary, float);
template __host__ __device__ float combine(Binary, float, float);

/// The i-th element of a thread if neighbouring threads take neighbouring elements: for types of any size.
__device__ Dim strided(int i) { return (static_cast<Dim>(blockIdx.x) * kPack + i) * blockDim.x + threadIdx.x; }

template <class T>
__global__ void fill_kernel(T* out, Dim count, double value) {
  const T v = convert<T>(value);
  for (int i = 0; i < kPack; ++i)
    if (strided(i) < count) out[strided(i)] = v;
}

template <class From, class To>
__global__ void cast_kernel(const From* x, Dim count, To* out) {
  From held[kPack] = {};  // all on their way before the first is stored
  for (int i = 0; i < kPack; ++i)
    if (strided(i) < count) held[i] = x[strided(i)];
  for (int i = 0; i < kPack; ++i)
    if (strided(i) < count) out[strided(i)] = convert<To>(held[i]);
}

template <class T>
__global__ void unary_kernel(Unary op, const T* x, Dim count, T* out) {
  const Dim begin = pack_begin(), left = count - begin;
  if (left <= 0) return;
  Pack<T> pack = load_pack(x + begin, left);
  for (int i = 0; i < kPack; ++i) pack[i] = apply_to<T>(op, pack[i]);
  store_pack(out + begin, left, pack);
}

template <class T>
__global__ void unary_backward_kernel(Unary op, const T* x, const T* dy, Dim count, T* dx) {
  const Dim begin = pack_begin(), left = count - begin;
  if (left <= 0) return;
  const Pack<T> at = load_pack(x + begin, left);
  Pack<T> pack = load_pack(dy + begin, left);
  for (int i = 0; i < kPack; ++i) pack[i] *= slope_at<T>(op, at[i]);
  store_pack(dx + begin, left, pack);
}

constexpr Dim kSummedRows = 64;  // of a block that sums rows, in 256 columns

/// Also sums[blockIdx.x] [columns] = Σ of the block's rows of dx: a warp takes every eighth row, a lane eight of the
/// block's columns.
template <class T>
__global__ void __launch_bounds__(kThreads)
    unary_backward_rows_kernel(Unary op, const T* x, const T* dy, Dim rows, Dim columns, T* dx, Compute<T>* sums) {
  const Dim first = static_cast<Dim>(blockIdx.y) * kWarpColumns, column = first + threadIdx.x % 32 * kPack,
            left = columns - column;
  const Dim begin = blockIdx.x * kSummedRows, end = begin + kSummedRows < rows ? begin + kSummedRows : rows;
  Pack<T> total = {};
  for (Dim row = begin + threadIdx.x / 32; row < end; row += kWarps) {
    const Dim place = row * columns + column;
    const Pack<T> at = load_pack(x + place, left);
    Pack<T> pack = load_pack(dy + place, left);
    for (int i = 0; i < kPack; ++i) pack[i] *= slope_at<T>(op, at[i]);
    const PackedPack<T> stored(pack);
    store_packed(dx + place, left, stored);
    pack = stored.unpack();
    for (int i = 0; i < kPack; ++i) total[i] += pack[i];
  }
  store_block<T>(total, first, columns, sums + blockIdx.x * columns);
}

template <class T, class B>
__global__ void binary_kernel(Binary op, const T* a, const B* b, Dim count, Dim columns, T* out) {
  const Dim begin = pack_begin(), left = count - begin;
  if (left <= 0) return;
  Pack<T> pack = load_pack(a + begin, left);
  Pack<B> other;
  if (columns == count) {
    other = load_pack(b + begin, left);
  } else {
    Dim column = begin % columns;
    for (int i = 0; i < kPack; ++i) {
      other[i] = load(b + column);
      column = column + 1 == columns ? 0 : column + 1;
    }
  }
  for (int i = 0; i < kPack; ++i) pack[i] = combine(op, pack[i], other[i]);
  store_pack(out + begin, left, pack);
}

template <class T>
__global__ void scale_kernel(const T* x, Dim count, double factor, T* out) {
  const Dim begin = pack_begin(), left = count - begin;
  if (left <= 0) return;
  Pack<T> pack = load_pack(x + begin, left);
  for (int i = 0; i < kPack; ++i) pack[i] *= static_cast<Compute<T>>(factor);
  store_pack(out + begin, left, pack);
}

template <class S, class T>
__global__ void expand_kernel(const S* scalar, double factor, T* out, Dim count) {
  const Dim begin = pack_begin(), left = count - begin;
  if (left <= 0) return;
  Pack<T> pack;
  const auto value = static_cast<Compute<T>>(static_cast<double>(load(scalar)) * factor);
  for (int i = 0; i < kPack; ++i) pack[i] = value;
  store_pack(out + begin, left, pack);
}

template <class Word>
__global__ void copy_block_kernel(const Word* x, Dim x_stride, Word* out, Dim out_stride, Dim rows, Dim columns) {
  const Dim i = static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * columns) out[i / columns * out_stride + i % columns] = x[i / columns * x_stride + i % columns];
}

/// A warp takes 256 columns of one row.
template <class T>
__global__ void dropout_kernel(const T* x, Dim rows, Dim columns, DropoutArguments dropout, T* out) {
  const Dim groups = (columns + kWarpColumns - 1) / kWarpColumns;
  const Dim warp = (static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x) / 32, row = warp / groups,
            first = warp % groups * kWarpColumns;
  if (row >= rows) return;
  const Dim column = first + threadIdx.x % 32 * kPack, left = columns - column;
  const Pack<T> multiplier = multipliers<T>(dropout, row_key(dropout, row), column);
  if (left <= 0) return;
  Pack<T> pack = load_pack(x + row * columns + column, left);
  for (int i = 0; i < kPack; ++i) pack[i] *= multiplier[i];
  store_pack(out + row * columns + column, left, pack);
}

}  // namespace

void CudaBackend::fill(const Tensor& out, double value) {
  if (value == 0 && !std::signbit(value)) {
    if (out.elements() > 0) check_cuda(cudaMemsetAsync(out.data(), 0, out.bytes(), stream()), "fill");
    return;
  }
  dispatch(out.dtype(), [&]<class T>() {
    launch(fill_kernel<T>, pack_blocks(out.elements()), kThreads, 0, stream(), out.as<T>(), out.elements(), value);
  });
}

void CudaBackend::cast(const Tensor& x, const Tensor& out) {
  if (x.dtype() == out.dtype()) {
    check_cuda(cudaMemcpyAsync(out.data(), x.data(), x.bytes(), cudaMemcpyDeviceToDevice, stream()), "copy");
    return;
  }
  dispatch(x.dtype(), [&]<class From>() {
    dispatch(out.dtype(), [&]<class To>() {
      launch(cast_kernel<From, To>, pack_blocks(x.elements()), kThreads, 0, stream(), x.as<From>(), x.elements(),
             out.as<To>());
    });
  });
}

void CudaBackend::unary(Unary op, const Tensor& x, const Tensor& out) {
  dispatch_real("unary", x.dtype(), [&]<class T>() {
    launch(unary_kernel<T>, pack_blocks(x.elements()), kThreads, 0, stream(), op, x.as<T>(), x.elements(), out.as<T>());
  });
}

void CudaBackend::unary_backward(Unary op, const Tensor& x, const Tensor& dy, const Tensor& dx,
                                 const Tensor& sum_of_rows) {
  dispatch_real("unary_backward", x.dtype(), [&]<class T>() {
    if (!sum_of_rows)
      return launch(unary_backward_kernel<T>, pack_blocks(x.elements()), kThreads, 0, stream(), op, x.as<T>(),
                    dy.as<T>(), x.elements(), dx.as<T>());
    const Dim rows = x.shape().rows(), columns = x.shape().columns(),
              row_blocks = (rows + kSummedRows - 1) / kSummedRows;
    const Workspace sums(*this, row_blocks * columns * static_cast<Dim>(sizeof(Compute<T>)));
    launch(unary_backward_rows_kernel<T>, dim3(static_cast<unsigned>(row_blocks), blocks(columns, kWarpColumns)),
           kThreads, 0, stream(), op, x.as<T>(), dy.as<T>(), rows, columns, dx.as<T>(), sums.as<Compute<T>>());
    join_blocks(sums.as<Compute<T>>(), row_blocks, columns, sum_of_rows.as<T>(), stream());
  });
}

void CudaBackend::binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& out) {
  dispatch_real("binary", a.dtype(), [&]<class T>() {
    dispatch_operand<T>(b.dtype(), [&]<class B>() {
      launch(binary_kernel<T, B>, pack_blocks(a.elements()), kThreads, 0, stream(), op, a.as<T>(), b.as<B>(),
             a.elements(), b.elements(), out.as<T>());
    });
  });
}

void CudaBackend::scale(const Tensor& x, double factor, const Tensor& out) {
  dispatch_real("scale", x.dtype(), [&]<class T>() {
    launch(scale_kernel<T>, pack_blocks(x.elements()), kThreads, 0, stream(), x.as<T>(), x.elements(), factor,
           out.as<T>());
  });
}

void CudaBackend::expand(const Tensor& scalar, double factor, const Tensor& out) {
  dispatch_real("expand", scalar.dtype(), [&]<class S>() {
    dispatch_real("expand", out.dtype(), [&]<class T>() {
      launch(expand_kernel<S, T>, pack_blocks(out.elements()), kThreads, 0, stream(), scalar.as<S>(), factor,
             out.as<T>(), out.elements());
    });
  });
}

void CudaBackend::copy_block(const Tensor& x, Dim x_stride, const Tensor& out, Dim out_stride, Dim rows, Dim columns) {
  const auto copy = [&]<class Word>() {
    launch(copy_block_kernel<Word>, blocks(rows * columns, kThreads), kThreads, 0, stream(), x.as<Word>(), x_stride,
           out.as<Word>(), out_stride, rows, columns);
  };
  switch (size_of(x.dtype())) {
    case 1: return copy.template operator()<std::uint8_t>();
    case 2: return copy.template operator()<std::uint16_t>();
    case 4: return copy.template operator()<std::uint32_t>();
    default: return copy.template operator()<std::uint64_t>();
  }
}

void CudaBackend::dropout(const Tensor& x, const Dropout& dropout, const Tensor& out) {
  dispatch_real("dropout", x.dtype(), [&]<class T>() {
    const Dim rows = x.shape().rows(), columns = x.shape().columns();
    const Dim warps = rows * ((columns + kWarpColumns - 1) / kWarpColumns);
    launch(dropout_kernel<T>, blocks(warps, kWarps), kThreads, 0, stream(), x.as<T>(), rows, columns,
           arguments(dropout), out.as<T>());
  });
}

}  // namespace bertrand::cuda
