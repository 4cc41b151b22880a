// Sums over elements and over rows.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/tree.h"

namespace bertrand::cpu {
namespace {

constexpr Dim kBlockElements = 4096;

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

/// Σ over all elements, where add(value, partial) is partial with what an element adds.
template <class T, class Add>
double CpuBackend::sum_of(const Tensor& x, const Add& add) {
  using C = Compute<T>;
  const Workspace workspace(*this, static_cast<std::size_t>(x.elements() / kBlockElements + 1) * sizeof(double));
  double* const sums = workspace.as<double>();
  // A block is summed sooner than it is handed out: a piece is some of them.
  parallel(x.elements(), 16 * kBlockElements, [&](Dim begin, Dim end) {
    for (Dim at = begin; at < end; at += kBlockElements) {
      Lanes<C> partial(C(0));
      for_lanes<C>(std::min(end - at, kBlockElements),
                   [&](Dim i, Dim n) { partial = add(Lanes<C>::load(x.as<T>() + at + i, n), partial); });
      sums[at / kBlockElements] = static_cast<double>(cpu::sum(partial));
    }
  });
  return tree_sum(sums, (x.elements() + kBlockElements - 1) / kBlockElements);
}

void CpuBackend::sum(const Tensor& x, double factor, const Tensor& out) {
  dispatch_real("sum", x.dtype(), [&]<class T>() {
    const double total = sum_of<T>(x, [](auto value, auto partial) { return partial += value; });
    out.as<Compute<T>>()[0] = static_cast<Compute<T>>(total * factor);
  });
}

void CpuBackend::norm(const Tensor& x, const Tensor& out) {
  dispatch_real("norm", x.dtype(), [&]<class T>() {
    out.as<double>()[0] = std::sqrt(sum_of<T>(x, [](auto value, auto partial) { return fma(value, value, partial); }));
  });
}

void CpuBackend::sum_rows(const Tensor& x, const Tensor& out) {
  dispatch_real("sum_rows", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim columns = out.elements();
    if (columns == 0) return;
    const Dim rows = x.elements() / columns, blocks = (rows + kBlockRows - 1) / kBlockRows;
    const Workspace workspace(*this, static_cast<std::size_t>(std::max<Dim>(1, blocks) * columns) * sizeof(C));
    C* partial = workspace.as<C>();
    constexpr Dim kStrip =
        1024;  // columns a piece takes: the sums stay in the first-level cache, the rows are read in runs
    const Dim strips = (columns + kStrip - 1) / kStrip;
    pool_.run(blocks * strips, [&](Dim piece, int) {
      const Dim block = piece / strips, first = piece % strips * kStrip, width = std::min(kStrip, columns - first);
      C* to = partial + block * columns + first;
      std::fill_n(to, width, C(0));
      add_rows(x.as<T>() + block * kBlockRows * columns + first, columns,
               std::min(kBlockRows, rows - block * kBlockRows), width, to);
    });
    pool_.run(strips, [&](Dim strip, int) {
      tree_sum_rows(partial, blocks, columns, strip * kStrip, std::min(columns, (strip + 1) * kStrip));
    });
    if (blocks == 0) fill(out, 0);
    else for_lanes<C>(columns, [&](Dim c, Dim n) { Lanes<C>::load(partial + c, n).store(out.as<T>() + c, n); });
  });
}

Dim CpuBackend::first_non_finite(const Tensor& x) {
  std::atomic<Dim> first = x.elements();
  dispatch(x.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T>)
      // How many elements are a piece is for speed alone.
      parallel(x.elements(), 16 * kBlockElements, [&](Dim begin, Dim end) {
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
