// Rows picked by index, and their gradient.
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/lanes.h"

namespace bertrand::cpu {

void CpuBackend::gather(const Tensor& table, const Tensor& rows, const Tensor& out) {
  const Dim columns = table.shape().product(1, table.shape().rank());
  const std::size_t bytes = static_cast<std::size_t>(columns) * size_of(table.dtype());
  const auto* indices = elements<std::int32_t>(rows);
  parallel(rows.elements(), row_block(columns), [&](Dim begin, Dim end) {
    for (Dim i = begin; i < end; ++i)
      std::memcpy(out.data() + static_cast<std::size_t>(i) * bytes, table.data() + static_cast<std::size_t>(indices[i]) * bytes, bytes);
  });
}

/// Each piece of work owns a strip of columns and walks all rows in order: no sorting, no atomics, one order of summation.
void CpuBackend::scatter_add(const Tensor& dy, const Tensor& rows, const Tensor& dtable, bool accumulate) {
  if (!accumulate) fill(dtable, 0);
  dispatch_real("scatter_add", dy.dtype(), [&]<class T>() {
    const Dim columns = dtable.shape().product(1, dtable.shape().rank());
    const auto* indices = elements<std::int32_t>(rows);
    parallel(columns, 64, [&](Dim begin, Dim end) {
      for (Dim i = 0; i < rows.elements(); ++i) {
        const T* from = elements<T>(dy) + i * columns + begin;
        T* to = writable<T>(dtable) + indices[i] * columns + begin;
        for_lanes<T>(end - begin, [&](Dim c, Dim n) { (Lanes<T>::load(to + c, n) + Lanes<T>::load(from + c, n)).store(to + c, n); });
      }
    });
  });
}

}  // namespace bertrand::cpu
