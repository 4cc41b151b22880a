// What softmax, attention and cross entropy do to one row.
#pragma once
#include <limits>

#include "tensor/cpu/math.h"
#include "tensor/shape.h"

namespace bertrand::cpu {

template <class T>
Compute<T> row_max(const T* x, Dim columns) {
  using C = Compute<T>;
  constexpr C kLeast = -std::numeric_limits<C>::infinity();
  Lanes<C> most(kLeast);
  for_lanes<C>(columns, [&](Dim c, Dim n) { most = max(Lanes<C>::load(x + c, n, kLeast), most); });
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
Compute<T> row_exp_sum(const T* x, Dim columns, Compute<T> most) {
  using C = Compute<T>;
  const Lanes<C> offset(most);
  Lanes<C> total(C(0));
  for_lanes<C>(columns, [&](Dim c, Dim n) {
    auto e = exp(Lanes<C>::load(x + c, n) - offset);
    if (n < Lanes<C>::kCount) {
      alignas(64) C kept[Lanes<C>::kCount];
      e.store(kept);
      e = Lanes<C>::load(kept, n);
    }
    total += e;
  });
  return sum(total);
}

template <class T>
Compute<T> row_dot(const T* a, const T* b, Dim columns) {
  using C = Compute<T>;
  Lanes<C> total(C(0));
  for_lanes<C>(columns, [&](Dim c, Dim n) { total = fma(Lanes<C>::load(a + c, n), Lanes<C>::load(b + c, n), total); });
  return sum(total);
}

}  // namespace bertrand::cpu
