// Layer normalisation with what usually surrounds it: y = norm(dropout(x) + residual) · γ + β. A warp takes a row and
// keeps it, so that each tensor passes through the GPU once: in registers up to 1,024 columns (backward in f64: 512),
// for which the loops over packs are unrolled. Longer rows lie in memory, as everything that a variable indexes.
#include "tensor/cuda/columns.h"
#include "tensor/cuda/dropout.h"

namespace bertrand::cuda {
namespace {

constexpr Dim kBlockRows = 16;  // rows of which one block sums dγ and dβ: 4,096 tokens give every SM a block

template <int kPacks>
constexpr int kUnrolled = kPacks <= 4 ? kPacks : 1;  // longer kernels take minutes to compile

template <class T>
__device__ Compute<T> rounded(Compute<T> x) {
  return convert<Compute<T>>(convert<T>(x));
}

/// One of kPacks packs of this lane's share of a row.
struct Place {
  Dim first, column, left;  ///< the warp's first column, the lane's first, and the columns from there on
  __device__ Place(int pack, Dim columns)
      : first(pack * kWarpColumns), column(first + threadIdx.x % 32 * kPack), left(columns - column) {}
};

template <class T>
struct Forward {
  const T *x, *residual, *gamma, *beta;
  T *sum, *y;
  Compute<T>* statistics;
  Dim rows, columns;
  double epsilon;
  DropoutArguments dropout;
};

template <class T, int kPacks>
__global__ void layer_norm_kernel(Forward<T> a) {
  const Dim row = static_cast<Dim>(blockIdx.x) * kWarps + threadIdx.x / 32, at = row * a.columns;
  if (row >= a.rows) return;
  Pack<T> s[kPacks];
  Compute<T> total = 0, squares = 0;
#pragma unroll kUnrolled < kPacks>
  for (int p = 0; p < kPacks; ++p) {
    const Place place(p, a.columns);
    s[p] = load_pack(a.x + at + place.column, place.left);
    if (a.dropout.threshold != 0)
      s[p] = dropped(s[p], a.dropout, keep_bits(a.dropout, a.dropout.row_keys[row], 0, place.first));
    if (a.residual) {
      const Pack<T> r = load_pack(a.residual + at + place.column, place.left);
      for (int i = 0; i < kPack; ++i) s[p][i] += r[i];
    }
    if (a.sum != a.x) store_pack(a.sum + at + place.column, place.left, s[p]);
    for (int i = 0; i < kPack; ++i) total += s[p][i] = rounded<T>(s[p][i]);  // as backward will read it
  }
  const Compute<T> mean = warp_sum(total) / static_cast<Compute<T>>(a.columns);
#pragma unroll kUnrolled < kPacks>
  for (int p = 0; p < kPacks; ++p)
    for (int i = 0; i < kPack; ++i)
      if (i < Place(p, a.columns).left) squares += (s[p][i] - mean) * (s[p][i] - mean);
  const Compute<T> inverse =
      1 / std::sqrt(warp_sum(squares) / static_cast<Compute<T>>(a.columns) + static_cast<Compute<T>>(a.epsilon));
#pragma unroll kUnrolled < kPacks>
  for (int p = 0; p < kPacks; ++p) {
    const Place place(p, a.columns);
    const Pack<T> gamma = load_pack(a.gamma + place.column, place.left),
                  beta = load_pack(a.beta + place.column, place.left);
    for (int i = 0; i < kPack; ++i) s[p][i] = (s[p][i] - mean) * inverse * gamma[i] + beta[i];
    store_pack(a.y + at + place.column, place.left, s[p]);
  }
  if (threadIdx.x % 32 == 0) {
    a.statistics[2 * row] = mean;
    a.statistics[2 * row + 1] = inverse;
  }
}

template <class T>
struct Backward {
  const T *sum, *gamma, *dy;
  const Compute<T>* statistics;
  T *dsum, *dx;
  Compute<T>*dgamma, *dbeta;  ///< [row blocks, columns]: each block's share
  Dim rows, columns;
  DropoutArguments dropout;
};

template <class T, int kPacks>
__global__ void layer_norm_backward_kernel(Backward<T> a) {
  Pack<T> dgamma[kPacks] = {}, dbeta[kPacks] = {};
  const Dim begin = blockIdx.x * kBlockRows, end = begin + kBlockRows < a.rows ? begin + kBlockRows : a.rows;
  for (Dim row = begin + threadIdx.x / 32; row < end; row += kWarps) {
    const Dim at = row * a.columns;
    const Compute<T> mean = a.statistics[2 * row], inverse = a.statistics[2 * row + 1];
    Pack<T> normalized[kPacks], slope[kPacks];  // x̂ and dŷ = dy γ
    Compute<T> slope_sum = 0, product_sum = 0;
#pragma unroll kUnrolled < kPacks>
    for (int p = 0; p < kPacks; ++p) {
      const Place place(p, a.columns);
      normalized[p] = load_pack(a.sum + at + place.column, place.left, mean);
      slope[p] = load_pack(a.dy + at + place.column, place.left);
      const Pack<T> gamma = load_pack(a.gamma + place.column, place.left);
      for (int i = 0; i < kPack; ++i) {
        normalized[p][i] = (normalized[p][i] - mean) * inverse;
        dgamma[p][i] += slope[p][i] * normalized[p][i];
        dbeta[p][i] += slope[p][i];
        slope[p][i] *= gamma[i];
        slope_sum += slope[p][i];
        product_sum += slope[p][i] * normalized[p][i];
      }
    }
    // ds = (dŷ − mean(dŷ) − x̂ · mean(dŷ x̂)) / σ
    const Compute<T> mean_slope = warp_sum(slope_sum) / static_cast<Compute<T>>(a.columns),
                     mean_product = warp_sum(product_sum) / static_cast<Compute<T>>(a.columns);
#pragma unroll kUnrolled < kPacks>
    for (int p = 0; p < kPacks; ++p) {
      const Place place(p, a.columns);
      for (int i = 0; i < kPack; ++i)
        slope[p][i] = rounded<T>((slope[p][i] - mean_slope - normalized[p][i] * mean_product) * inverse);
      store_pack(a.dsum + at + place.column, place.left, slope[p]);
      if (a.dx)
        store_pack(a.dx + at + place.column, place.left,
                   dropped(slope[p], a.dropout, keep_bits(a.dropout, a.dropout.row_keys[row], 0, place.first)));
    }
  }
#pragma unroll kUnrolled < kPacks>
  for (int p = 0; p < kPacks; ++p) {
    store_block(dgamma[p], p * kWarpColumns, a.columns, a.dgamma + blockIdx.x * a.columns);
    store_block(dbeta[p], p * kWarpColumns, a.columns, a.dbeta + blockIdx.x * a.columns);
  }
}

/// Calls body.operator()<kPacks>() with how many packs a lane needs for a row.
template <class Body>
void dispatch_packs(Dim columns, Body&& body) {
  const Dim packs = (columns + kWarpColumns - 1) / kWarpColumns;
  if (packs <= 1) return body.template operator()<1>();
  if (packs == 2) return body.template operator()<2>();
  if (packs == 3) return body.template operator()<3>();
  if (packs == 4) return body.template operator()<4>();
  if (packs <= 16) return body.template operator()<16>();
  fail(Failure::usage, "layer_norm: expected at most {} columns on cuda, got {}", 16 * kWarpColumns, columns);
}

}  // namespace

void CudaBackend::layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options, const Tensor& sum,
                             const Tensor& y, const Tensor& statistics) {
  dispatch_real("layer_norm", x.dtype(), [&]<class T>() {
    const Forward<T> a{x.as<T>(),           residual.as<T>(), options.gamma.as<T>(),     options.beta.as<T>(),
                       sum.as<T>(),         y.as<T>(),        in_compute<T>(statistics), x.shape().rows(),
                       x.shape().columns(), options.epsilon,  arguments(options.dropout)};
    dispatch_packs(a.columns, [&]<int kPacks>() {
      launch(layer_norm_kernel<T, kPacks>, blocks(a.rows, kWarps), kThreads, 0, stream(), a);
    });
  });
}

void CudaBackend::layer_norm_backward(const Tensor& sum, const Tensor& statistics, const LayerNorm& options,
                                      const Tensor& dy, const Tensor& dsum, const Tensor& dx, const Tensor& dgamma,
                                      const Tensor& dbeta) {
  dispatch_real("layer_norm_backward", sum.dtype(), [&]<class T>() {
    const Dim rows = sum.shape().rows(), columns = sum.shape().columns(),
              row_blocks = (rows + kBlockRows - 1) / kBlockRows;
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
                        arguments(options.dropout)};
    dispatch_packs(columns, [&]<int kPacks>() {
      launch(layer_norm_backward_kernel<T, kPacks>, static_cast<unsigned>(row_blocks), kThreads, 0, stream(), a);
    });
    join_blocks(gamma_shares, row_blocks, columns, dgamma.as<T>(), stream(), dbeta.as<T>());
  });
}

}  // namespace bertrand::cuda
