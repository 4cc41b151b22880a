// What softmax, attention and cross entropy do to one row.
#pragma once
#include <limits>

#include "tensor/cpu/math.h"
#include "tensor/shape.h"

namespace bertrand::cpu {

template <class T>
T row_max(const T* x, Dim columns) {
  constexpr T kLeast = -std::numeric_limits<T>::infinity();
  Lanes<T> most(kLeast);
  for_lanes<T>(columns, [&](Dim c, Dim n) { most = max(Lanes<T>::load(x + c, n, kLeast), most); });
  return max(most);
}

/// y = exp(factor · (x − most)); returns Σ y. y may be x.
template <class T>
T row_exp(const T* x, Dim columns, T factor, T most, T* y) {
  const Lanes<T> f(factor), offset(most);
  Lanes<T> total(T(0));
  for_lanes<T>(columns, [&](Dim c, Dim n) {
    const auto e = exp((Lanes<T>::load(x + c, n) - offset) * f);
    e.store(y + c, n);
    total += n == Lanes<T>::kCount ? e : Lanes<T>::load(y + c, n);  // nothing from the padding
  });
  return sum(total);
}

/// Σ exp(x − most), storing nothing.
template <class T>
T row_exp_sum(const T* x, Dim columns, T most) {
  const Lanes<T> offset(most);
  Lanes<T> total(T(0));
  for_lanes<T>(columns, [&](Dim c, Dim n) {
    auto e = exp(Lanes<T>::load(x + c, n) - offset);
    if (n < Lanes<T>::kCount) {
      alignas(64) T kept[Lanes<T>::kCount];
      e.store(kept);
      e = Lanes<T>::load(kept, n);
    }
    total += e;
  });
  return sum(total);
}

template <class T>
T row_dot(const T* a, const T* b, Dim columns) {
  Lanes<T> total(T(0));
  for_lanes<T>(columns, [&](Dim c, Dim n) { total = fma(Lanes<T>::load(a + c, n), Lanes<T>::load(b + c, n), total); });
  return sum(total);
}

}  // namespace bertrand::cpu
