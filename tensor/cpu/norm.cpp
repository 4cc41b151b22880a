// Layer normalisation with what usually surrounds it: y = norm(dropout(x) + residual) · γ + β.
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/dropout.h"
#include "tensor/cpu/math.h"
#include "tensor/cpu/tree.h"

namespace bertrand::cpu {
namespace {

/// sum = dropout(x) + residual for one row. It is x if there is neither.
template <class T>
void add_row(const T* x, const T* residual, const Dropout& dropout, std::int64_t row_key, Dim columns, T* to) {
  using C = Compute<T>;
  if (dropout) {
    for_dropout_row<C>(dropout, row_key, 0, columns, [&](Dim c, Dim n, const Lanes<C>& multiplier) {
      const auto kept = Lanes<C>::load(x + c, n) * multiplier;
      (residual ? kept + Lanes<C>::load(residual + c, n) : kept).store(to + c, n);
    });
  } else if (residual) {
    for_lanes<C>(columns,
                 [&](Dim c, Dim n) { (Lanes<C>::load(x + c, n) + Lanes<C>::load(residual + c, n)).store(to + c, n); });
  }
}

/// The statistics are those of x as it is stored, so that backward sees the same numbers.
template <class T, class C = Compute<T>>
void normalize_row(const T* x, const T* gamma, const T* beta, double epsilon, Dim columns, T* y, C* statistics) {
  Lanes<C> total(C(0)), squares(C(0));
  for_lanes<C>(columns, [&](Dim c, Dim n) { total += Lanes<C>::load(x + c, n); });
  const C mean = sum(total) / static_cast<C>(columns);
  const Lanes<C> m(mean);
  for_lanes<C>(columns, [&](Dim c, Dim n) {
    const auto d = Lanes<C>::load(x + c, n, mean) - m;
    squares = fma(d, d, squares);
  });
  const C inverse = C(1) / std::sqrt(sum(squares) / static_cast<C>(columns) + static_cast<C>(epsilon));
  const Lanes<C> i(inverse);
  for_lanes<C>(columns, [&](Dim c, Dim n) {
    const auto normalized = (Lanes<C>::load(x + c, n) - m) * i;
    fma(normalized, Lanes<C>::load(gamma + c, n), Lanes<C>::load(beta + c, n)).store(y + c, n);
  });
  statistics[0] = mean;
  statistics[1] = inverse;
}

}  // namespace

void CpuBackend::layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options, const Tensor& sum,
                            const Tensor& y, const Tensor& statistics) {
  dispatch_real("layer_norm", x.dtype(), [&]<class T>() {
    const Dim columns = x.shape().columns();
    const auto* keys = options.dropout ? options.dropout.row_keys.as<std::int64_t>() : nullptr;
    parallel(x.shape().rows(), row_block(columns), [&](Dim begin, Dim end) {
      for (Dim r = begin; r < end; ++r) {
        T* const row = sum.as<T>() + r * columns;
        add_row(x.as<T>() + r * columns, residual ? residual.as<T>() + r * columns : nullptr, options.dropout,
                keys ? keys[r] : 0, columns, row);
        normalize_row(row, options.gamma.as<T>(), options.beta.as<T>(), options.epsilon, columns,
                      y.as<T>() + r * columns, statistics.as<Compute<T>>() + 2 * r);
      }
    });
  });
}

void CpuBackend::layer_norm_backward(const Tensor& sum, const Tensor& statistics, const LayerNorm& options,
                                     const Tensor& dy, const Tensor& dsum, const Tensor& dx, const Tensor& dgamma,
                                     const Tensor& dbeta) {
  dispatch_real("layer_norm_backward", sum.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim rows = sum.shape().rows(), columns = sum.shape().columns(), blocks = (rows + kBlockRows - 1) / kBlockRows;
    const auto* keys = dx ? options.dropout.row_keys.as<std::int64_t>() : nullptr;
    const T* const gamma = options.gamma.as<T>();
    // Each block of rows sums its own share of dγ and dβ, side by side.
    const Workspace workspace(*this, static_cast<std::size_t>(std::max<Dim>(1, blocks) * 2 * columns) * sizeof(C));
    C* const partial = workspace.as<C>();
    if (blocks == 0) std::fill_n(partial, 2 * columns, C(0));
    pool_.run(blocks, [&](Dim block, int) {
      C *const block_gamma = partial + block * 2 * columns, *const block_beta = block_gamma + columns;
      std::fill_n(block_gamma, 2 * columns, C(0));
      for (Dim r = block * kBlockRows; r < std::min(rows, (block + 1) * kBlockRows); ++r) {
        const T *const s = sum.as<T>() + r * columns, *const g = dy.as<T>() + r * columns;
        T *const ds = dsum.as<T>() + r * columns, *const dropped = dx ? dx.as<T>() + r * columns : nullptr;
        const Lanes<C> mean(statistics.as<C>()[2 * r]), inverse(statistics.as<C>()[2 * r + 1]);
        Lanes<C> dx_hat_sum(C(0)), product_sum(C(0));
        for_lanes<C>(columns, [&](Dim c, Dim n) {
          const auto d = Lanes<C>::load(g + c, n);
          const auto normalized = (Lanes<C>::load(s + c, n) - mean) * inverse;
          const auto dx_hat = d * Lanes<C>::load(gamma + c, n);  // 0 in the padding
          dx_hat_sum += dx_hat;
          product_sum = fma(dx_hat, normalized, product_sum);
          fma(d, normalized, Lanes<C>::load(block_gamma + c, n)).store(block_gamma + c, n);
          (d + Lanes<C>::load(block_beta + c, n)).store(block_beta + c, n);
        });
        // ds = (dx̂ − mean(dx̂) − x̂ · mean(dx̂ x̂)) / σ   with dx̂ = dy γ
        const Lanes<C> mean_dx_hat(cpu::sum(dx_hat_sum) / static_cast<C>(columns)),
            mean_product(cpu::sum(product_sum) / static_cast<C>(columns));
        for_lanes<C>(columns, [&](Dim c, Dim n) {
          const auto normalized = (Lanes<C>::load(s + c, n) - mean) * inverse;
          const auto centred =
              fma(Lanes<C>::load(g + c, n), Lanes<C>::load(gamma + c, n), Lanes<C>(C(0)) - mean_dx_hat);
          (fma(Lanes<C>(C(0)) - normalized, mean_product, centred) * inverse).store(ds + c, n);
        });
        if (dropped)
          for_dropout_row<C>(options.dropout, keys[r], 0, columns, [&](Dim c, Dim n, const Lanes<C>& multiplier) {
            (Lanes<C>::load(ds + c, n) * multiplier).store(dropped + c, n);
          });
      }
    });
    parallel(2 * columns, 256, [&](Dim begin, Dim end) { tree_sum_rows(partial, blocks, 2 * columns, begin, end); });
    for_lanes<C>(columns, [&](Dim c, Dim n) {
      Lanes<C>::load(partial + c, n).store(dgamma.as<T>() + c, n);
      Lanes<C>::load(partial + columns + c, n).store(dbeta.as<T>() + c, n);
    });
  });
}

}  // namespace bertrand::cpu
