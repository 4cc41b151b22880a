// Sums over elements and over rows.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/tree.h"

namespace bertrand::cpu {
namespace {

constexpr Dim kLeaf = 4096;  // elements

/// leaf(begin, end) of every block of [0, count), then their pairwise sum.
template <class Parallel, class Leaf>
double sum_leaves(Dim count, double* leaves, const Parallel& parallel, const Leaf& leaf) {
  parallel(count, kLeaf, [&](Dim begin, Dim end) { leaves[begin / kLeaf] = leaf(begin, end); });
  return tree_sum(leaves, (count + kLeaf - 1) / kLeaf);
}

/// to[c] += Σ rows[r][c], one row after the other; four share a pass over `to`.
template <class T, class C = Compute<T>>
void add_rows(const T* rows, Dim stride, Dim count, Dim columns, C* to) {
  const auto pass = [&](const T* from, auto... offsets) {
    for_lanes<C>(columns, [&](Dim c, Dim n) {
      auto total = Lanes<C>::load(to + c, n);
      ((total += Lanes<C>::load(from + offsets * stride + c, n)), ...);
      total.store(to + c, n);
    });
  };
  Dim r = 0;
  for (; r + 4 <= count; r += 4) pass(rows + r * stride, 0, 1, 2, 3);
  for (; r < count; ++r) pass(rows + r * stride, 0);
}

template <class T>
bool is_finite(T value) {
  if constexpr (std::is_same_v<T, double>) return std::isfinite(value);
  else return std::isfinite(static_cast<float>(value));
}

}  // namespace

void CpuBackend::sum(const Tensor& x, double factor, const Tensor& out) {
  dispatch_real("sum", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Workspace leaves(*this, static_cast<std::size_t>(x.elements() / kLeaf + 1) * sizeof(double));
    const auto share = [&](Dim count, Dim block, const auto& body) { parallel(count, block, body); };
    const double total = sum_leaves(x.elements(), leaves.as<double>(), share, [&](Dim begin, Dim end) {
      Lanes<C> partial(C(0));
      for_lanes<C>(end - begin, [&](Dim i, Dim n) { partial += Lanes<C>::load(x.as<T>() + begin + i, n); });
      return static_cast<double>(cpu::sum(partial));
    });
    out.as<C>()[0] = static_cast<C>(total * factor);
  });
}

void CpuBackend::norm(const Tensor& x, const Tensor& out) {
  dispatch_real("norm", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Workspace leaves(*this, static_cast<std::size_t>(x.elements() / kLeaf + 1) * sizeof(double));
    const auto share = [&](Dim count, Dim block, const auto& body) { parallel(count, block, body); };
    const double total = sum_leaves(x.elements(), leaves.as<double>(), share, [&](Dim begin, Dim end) {
      Lanes<C> partial(C(0));
      for_lanes<C>(end - begin, [&](Dim i, Dim n) {
        const auto v = Lanes<C>::load(x.as<T>() + begin + i, n);
        partial = fma(v, v, partial);
      });
      return static_cast<double>(cpu::sum(partial));
    });
    out.as<double>()[0] = std::sqrt(total);
  });
}

void CpuBackend::sum_rows(const Tensor& x, const Tensor& out) {
  dispatch_real("sum_rows", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim columns = out.elements();
    if (columns == 0) return;
    const Dim rows = x.elements() / columns, leaves = (rows + kLeafRows - 1) / kLeafRows;
    const Workspace workspace(*this, static_cast<std::size_t>(std::max<Dim>(1, leaves) * columns) * sizeof(C));
    C* partial = workspace.as<C>();
    constexpr Dim kStrip =
        1024;  // columns a piece takes: the sums stay in the first-level cache, the rows are read in runs
    const Dim strips = (columns + kStrip - 1) / kStrip;
    pool_.run(leaves * strips, [&](Dim piece, int) {
      const Dim leaf = piece / strips, first = piece % strips * kStrip, width = std::min(kStrip, columns - first);
      C* to = partial + leaf * columns + first;
      std::fill_n(to, width, C(0));
      add_rows(x.as<T>() + leaf * kLeafRows * columns + first, columns, std::min(kLeafRows, rows - leaf * kLeafRows),
               width, to);
    });
    pool_.run(strips, [&](Dim strip, int) {
      tree_sum_rows(partial, leaves, columns, strip * kStrip, std::min(columns, (strip + 1) * kStrip));
    });
    if (leaves == 0) fill(out, 0);
    else for_lanes<C>(columns, [&](Dim c, Dim n) { Lanes<C>::load(partial + c, n).store(out.as<T>() + c, n); });
  });
}

Dim CpuBackend::first_non_finite(const Tensor& x) {
  std::atomic<Dim> first = x.elements();
  dispatch(x.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T>)
      parallel(x.elements(), 16 * kLeaf, [&](Dim begin, Dim end) {
        const T *const data = x.as<T>(), *const last = data + end;
        const Dim at = std::find_if_not(data + begin, last, is_finite<T>) - data;
        Dim least = first;
        while (at < end && at < least && !first.compare_exchange_weak(least, at)) {
        }
      });
  });
  return first < x.elements() ? first.load() : -1;
}

}  // namespace bertrand::cpu
