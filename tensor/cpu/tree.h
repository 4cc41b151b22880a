// Sums in a fixed order: blocks of a fixed size, then a pairwise tree, so that no number of threads changes a bit.
#pragma once
#include "tensor/cpu/lanes.h"
#include "tensor/shape.h"

namespace bertrand::cpu {

/// Rows that one block of a sum over rows takes.
inline constexpr Dim kBlockRows = 64;

/// Σ of `count` numbers, pairwise; overwrites them.
template <class T>
T tree_sum(T* values, Dim count) {
  for (Dim step = 1; step < count; step *= 2)
    for (Dim i = 0; i + step < count; i += 2 * step) values[i] += values[i + step];
  return count > 0 ? values[0] : T(0);
}

/// The same for columns [begin, end) of `count` rows of `stride`; row 0 receives the sums.
template <class T>
void tree_sum_rows(T* rows, Dim count, Dim stride, Dim begin, Dim end) {
  for (Dim step = 1; step < count; step *= 2)
    for (Dim i = 0; i + step < count; i += 2 * step) {
      T *to = rows + i * stride + begin, *from = rows + (i + step) * stride + begin;
      for_lanes<T>(end - begin,
                   [&](Dim c, Dim n) { (Lanes<T>::load(to + c, n) + Lanes<T>::load(from + c, n)).store(to + c, n); });
    }
}

}  // namespace bertrand::cpu
