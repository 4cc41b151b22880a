// Layer normalisation with what usually surrounds it: y = norm(dropout(x) + residual) · γ + β. A block takes a row, or
// several one after the other. A warp has 256 columns of it, and a lane eight of these, which stay in registers: each
// tensor passes through the GPU once.
#include <algorithm>

#include "tensor/cuda/columns.h"
#include "tensor/cuda/dropout.h"

namespace bertrand::cuda {
namespace {

constexpr int kMostThreads = 512;  // of a row: each may have 128 registers
constexpr int kMostWarps = kMostThreads / 32;

/// Numbers of each warp, for add_up. They are read after its barrier, so the call after the next barrier may have them.
template <class C, int kCount>
using OfWarps = SharedArray<C, kCount * kMostWarps>;

/// The sums of each x over the block, for every lane. block_sum has two barriers for one number, this has one for all.
/// The numbers of four warps are read at once, so those of absent warps must be 0 from the beginning (set_to_0). The
/// loop is not unrolled further: most blocks have no more than four warps.
template <class C, int kCount>
__device__ void add_up(C (&x)[kCount], OfWarps<C, kCount>& of_warps) {
  const unsigned warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int i = 0; i < kCount; ++i) {
    x[i] = warp_sum(x[i]);
    if (threadIdx.x % 32 == 0) of_warps[i * kMostWarps + warp] = x[i];
  }
  __syncthreads();
  for (C& sum : x) sum = 0;
#pragma unroll 1
  for (unsigned w = 0; w < warps; w += 4)
    for (int i = 0; i < kCount; ++i)
      for (unsigned of_four = 0; of_four < 4; ++of_four) x[i] += of_warps[i * kMostWarps + w + of_four];
}
template <class C, int kCount>
__device__ void set_to_0(OfWarps<C, kCount>& of_warps) {
  static_assert(kCount * kMostWarps <= 32, "threads that every block has");
  if (threadIdx.x < kCount * kMostWarps) of_warps[threadIdx.x] = 0;
}

template <class T>
struct Forward {
  const T *x, *residual, *gamma, *beta;
  T *sum, *y;
  Compute<T>* statistics;
  Dim rows, columns, block_rows;
  Compute<T> inverse_columns, epsilon;
  DropoutArguments dropout;
};

/// Rows that one block takes, one after the other: four if that leaves enough blocks for all SMs, 15 for each of 132.
Dim forward_rows(Dim rows) { return rows < 8192 ? 1 : 4; }

/// What a thread reads of a row.
template <class T>
struct ForwardRow {
  PackedPack<T> x, residual;
  std::int64_t key;  ///< of the dropout

  template <bool kAligned>
  __device__ static ForwardRow load(const Forward<T>& a, Dim row, Dim at, Dim left) {
    return {load_packed<kAligned>(a.x + at, left),
            a.residual ? load_packed<kAligned>(a.residual + at, left) : PackedPack<T>(Pack<T>{}),
            row_key(a.dropout, row)};
  }
};

template <class T, bool kAligned>
__global__ void __launch_bounds__(kMostThreads) layer_norm_kernel(Forward<T> a) {
  using C = Compute<T>;
  __shared__ OfWarps<C, 1> of_sum, of_squares;
  const Dim column = static_cast<Dim>(threadIdx.x) * kPack, left = a.columns - column;
  const Dim begin = blockIdx.x * a.block_rows, end = begin + a.block_rows < a.rows ? begin + a.block_rows : a.rows;
  const PackedPack<T> gammas = load_packed<kAligned>(a.gamma + column, left),
                      betas = load_packed<kAligned>(a.beta + column, left);
  Dim at = begin * a.columns + column;
  ForwardRow<T> next = ForwardRow<T>::template load<kAligned>(a, begin, at, left);
  set_to_0<C, 1>(of_sum);
  set_to_0<C, 1>(of_squares);
  __syncthreads();
  for (Dim row = begin; row < end; ++row, at += a.columns) {
    Pack<T> s = next.x.unpack();
    const Pack<T> residual = next.residual.unpack(), multiplier = multipliers<T>(a.dropout, next.key, column);
    if (row + 1 < end)  // the next row is on its way from now on
      next = ForwardRow<T>::template load<kAligned>(a, row + 1, at + a.columns, left);
    for (int i = 0; i < kPack; ++i) s[i] = s[i] * multiplier[i] + residual[i];
    const PackedPack<T> sum(s);
    if (a.sum != a.x) store_packed<kAligned>(a.sum + at, left, sum);
    s = sum.unpack();  // as backward will read it
    C mean[1] = {0}, variance[1] = {0};
    for (int i = 0; i < kPack; ++i) mean[0] += s[i];
    add_up(mean, of_sum);
    mean[0] /= static_cast<C>(a.columns);  // the mean of ones is 1: a rounded 1 / columns would not give that
    for (int i = 0; i < kPack; ++i) {
      s[i] -= mean[0];
      if (kAligned ? left > 0 : i < left) variance[0] += s[i] * s[i];
    }
    add_up(variance, of_squares);
    const C inverse = inverse_root(variance[0] * a.inverse_columns + a.epsilon);
    const Pack<T> gamma = gammas.unpack(), beta = betas.unpack();
    for (int i = 0; i < kPack; ++i) s[i] = s[i] * inverse * gamma[i] + beta[i];
    store_pack<kAligned>(a.y + at, left, s);
    if (threadIdx.x == 0) {
      a.statistics[2 * row] = mean[0];
      a.statistics[2 * row + 1] = inverse;
    }
  }
}

template <class T>
struct Backward {
  const T *sum, *gamma, *dy;
  const Compute<T>* statistics;
  T *dsum, *dx;
  Compute<T>*dgamma, *dbeta;  ///< [row blocks, columns]: each block's share
  Dim rows, columns, block_rows;
  Compute<T> inverse_columns;
  DropoutArguments dropout;
};

/// Rows that one block takes, one after the other, and of which it sums dγ and dβ: at least 8, in at most 1,024 blocks.
/// An H100 holds eight of three warps on each of its 132 SMs in half types, so that all run at once.
Dim backward_rows(Dim rows) { return std::max<Dim>(8, (rows + 1023) / 1024); }

/// What a thread reads of a row.
template <class T>
struct BackwardRow {
  PackedPack<T> sum, dy;
  Compute<T> mean, inverse;
  std::int64_t key;  ///< of the dropout

  template <bool kAligned>
  __device__ static BackwardRow load(const Backward<T>& a, Dim row, Dim at, Dim left) {
    return {load_packed<kAligned>(a.sum + at, left), load_packed<kAligned>(a.dy + at, left), a.statistics[2 * row],
            a.statistics[2 * row + 1], row_key(a.dropout, row)};
  }
};

template <class T, bool kAligned>
__global__ void __launch_bounds__(kMostThreads) layer_norm_backward_kernel(Backward<T> a) {
  using C = Compute<T>;
  __shared__ OfWarps<C, 2> of_rows[2];  // of even and odd rows
  const Dim column = static_cast<Dim>(threadIdx.x) * kPack, left = a.columns - column;
  const Dim begin = blockIdx.x * a.block_rows, end = begin + a.block_rows < a.rows ? begin + a.block_rows : a.rows;
  const Pack<T> gamma = load_pack<kAligned>(a.gamma + column, left);
  Pack<T> dgamma = {}, dbeta = {};
  Dim at = begin * a.columns + column;
  BackwardRow<T> next = BackwardRow<T>::template load<kAligned>(a, begin, at, left);
  for (auto& of_row : of_rows) set_to_0<C, 2>(of_row);
  __syncthreads();
  for (Dim row = begin; row < end; ++row, at += a.columns) {
    Pack<T> normalized = next.sum.unpack(), slope = next.dy.unpack();  // to become x̂ and dx̂ = dy γ
    const C mean = next.mean, inverse = next.inverse;
    const std::int64_t key = next.key;
    if (row + 1 < end)  // the next row is on its way from now on
      next = BackwardRow<T>::template load<kAligned>(a, row + 1, at + a.columns, left);
    C means[2] = {0, 0};               // at first the sums of dx̂ and of dx̂ x̂
    for (int i = 0; i < kPack; ++i) {  // after the end of the row dy is 0, and x̂ any number
      normalized[i] = (normalized[i] - mean) * inverse;
      dgamma[i] += slope[i] * normalized[i];
      dbeta[i] += slope[i];
      slope[i] *= gamma[i];
      means[0] += slope[i];
      means[1] += slope[i] * normalized[i];
    }
    add_up(means, of_rows[row % 2]);
    for (C& m : means) m *= a.inverse_columns;
    // ds = (dx̂ − mean(dx̂) − x̂ · mean(dx̂ x̂)) / σ
    for (int i = 0; i < kPack; ++i) slope[i] = (slope[i] - means[0] - normalized[i] * means[1]) * inverse;
    const PackedPack<T> dsum(slope);
    store_packed<kAligned>(a.dsum + at, left, dsum);
    if (!a.dx) continue;
    slope = dsum.unpack();
    const Pack<T> multiplier = multipliers<T>(a.dropout, key, column);
    for (int i = 0; i < kPack; ++i) slope[i] *= multiplier[i];
    store_pack<kAligned>(a.dx + at, left, slope);
  }
  const Dim to = blockIdx.x * a.columns + column;
  for (int i = 0; i < kPack && i < left; ++i) {
    a.dgamma[to + i] = dgamma[i];
    a.dbeta[to + i] = dbeta[i];
  }
}

/// Threads that take a row.
unsigned row_threads(Dim columns) {
  constexpr Dim kMost = kMostThreads * kPack;
  if (columns > kMost) fail(Failure::usage, "layer_norm: expected at most {} columns on cuda, got {}", kMost, columns);
  return 32 * std::max(1u, blocks(columns, kWarpColumns));
}

}  // namespace

void CudaBackend::layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options, const Tensor& sum,
                             const Tensor& y, const Tensor& statistics) {
  dispatch_real("layer_norm", x.dtype(), [&]<class T>() {
    const Dim rows = x.shape().rows(), of_block = forward_rows(rows);
    const Forward<T> a{x.as<T>(),
                       residual.as<T>(),
                       options.gamma.as<T>(),
                       options.beta.as<T>(),
                       sum.as<T>(),
                       y.as<T>(),
                       in_compute<T>(statistics),
                       rows,
                       x.shape().columns(),
                       of_block,
                       1 / static_cast<Compute<T>>(x.shape().columns()),
                       static_cast<Compute<T>>(options.epsilon),
                       arguments(options.dropout)};
    const bool aligned = rows_are_aligned(a.columns, a.x, a.residual, a.gamma, a.beta, a.sum, a.y);
    dispatch_bool(aligned, [&]<bool kAligned>() {
      launch(layer_norm_kernel<T, kAligned>, blocks(rows, of_block), row_threads(a.columns), 0, stream(), a);
    });
  });
}

void CudaBackend::layer_norm_backward(const Tensor& sum, const Tensor& statistics, const LayerNorm& options,
                                      const Tensor& dy, const Tensor& dsum, const Tensor& dx, const Tensor& dgamma,
                                      const Tensor& dbeta) {
  dispatch_real("layer_norm_backward", sum.dtype(), [&]<class T>() {
    const Dim rows = sum.shape().rows(), columns = sum.shape().columns(), of_block = backward_rows(rows),
              row_blocks = (rows + of_block - 1) / of_block;
    const Workspace shares(*this, 2 * row_blocks * columns * static_cast<Dim>(sizeof(Compute<T>)));
    auto *const gamma_shares = shares.as<Compute<T>>(), *const beta_shares = gamma_shares + row_blocks * columns;
    const Backward<T> a{sum.as<T>(),
                        options.gamma.as<T>(),
                        dy.as<T>(),
                        in_compute<T>(statistics),
                        dsum.as<T>(),
                        dx.as<T>(),
                        gamma_shares,
                        beta_shares,
                        rows,
                        columns,
                        of_block,
                        1 / static_cast<Compute<T>>(columns),
                        arguments(options.dropout)};
    dispatch_bool(rows_are_aligned(columns, a.sum, a.gamma, a.dy, a.dsum, a.dx), [&]<bool kAligned>() {
      launch(layer_norm_backward_kernel<T, kAligned>, blocks(row_blocks, 1), row_threads(columns), 0, stream(), a);
    });
    join_blocks(gamma_shares, row_blocks, columns, dgamma.as<T>(), stream(), dbeta.as<T>());
  });
}

}  // namespace bertrand::cuda
