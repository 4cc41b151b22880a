// Rows picked by index, and their gradient.
#include <algorithm>
#include <numeric>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/lanes.h"

namespace bertrand::cpu {
namespace {

constexpr int kStripVectors = 4;  // of columns that are summed side by side in registers

/// The row of dtable at `to` (+)= the rows of dy that `picked` names, in its order; summed before it is rounded to T.
template <class T, class C = Compute<T>>
void sum_picked(std::span<const std::int32_t> picked, const T* dy, Dim columns, Dim width, bool accumulate, T* to) {
  const auto at = [&](int v) { return v * Lanes<C>::kCount; };
  const int vectors = static_cast<int>((width + Lanes<C>::kCount - 1) / Lanes<C>::kCount);
  Lanes<C> total[kStripVectors];
  for (int v = 0; v < vectors; ++v) total[v] = accumulate ? Lanes<C>::load(to + at(v), width - at(v)) : Lanes<C>(C(0));
  for (const std::int32_t row : picked)
    for (int v = 0; v < vectors; ++v) total[v] += Lanes<C>::load(dy + row * columns + at(v), width - at(v));
  for (int v = 0; v < vectors; ++v) total[v].store(to + at(v), width - at(v));
}

}  // namespace

void CpuBackend::gather(const Tensor& table, const Tensor& rows, const Tensor& out) {
  const Dim columns = table.shape().product(1, table.shape().rank());
  const std::size_t bytes = static_cast<std::size_t>(columns) * size_of(table.dtype());
  const auto* indices = rows.as<std::int32_t>();
  check_indices(kGatherRows, indices, rows.elements(), 0, table.shape()[0]);
  parallel(rows.elements(), row_block(columns), [&](Dim begin, Dim end) {
    for (Dim i = begin; i < end; ++i)
      std::memcpy(out.data() + static_cast<std::size_t>(i) * bytes,
                  table.data() + static_cast<std::size_t>(indices[i]) * bytes, bytes);
  });
}

/// Rows of dy are taken in the order of their index: each row of dtable is one sum in registers, whose order nothing
/// but the indices decides. Each piece of work owns a strip of columns.
void CpuBackend::scatter_add(const Tensor& dy, const Tensor& rows, const Tensor& dtable, bool accumulate) {
  const auto* indices = rows.as<std::int32_t>();
  check_indices(kScatterRows, indices, rows.elements(), 0, dtable.shape()[0]);
  if (!accumulate) fill(dtable, 0);
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows.elements()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t row) { return indices[row]; });
  dispatch_real("scatter_add", dy.dtype(), [&]<class T>() {
    const Dim columns = dtable.shape().product(1, dtable.shape().rank());
    parallel(columns, kStripVectors * Lanes<Compute<T>>::kCount, [&](Dim begin, Dim end) {
      for (auto first = order.begin(), last = first; first != order.end(); first = last) {
        const std::int32_t index = indices[*first];
        while (last != order.end() && indices[*last] == index) ++last;
        sum_picked({first, last}, dy.as<T>() + begin, columns, end - begin, accumulate,
                   dtable.as<T>() + index * columns + begin);
      }
    });
  });
}

}  // namespace bertrand::cpu
