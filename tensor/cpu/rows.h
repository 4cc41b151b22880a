// What softmax, attention and cross entropy do to one row.
#pragma once
#include <algorithm>
#include <array>
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

/// The first n lanes of exponentials, 0 in the others, of which each may be any number: the lesser of it and its bound.
template <class T>
Lanes<T> first_of(const Lanes<T>& e, Dim n) {
  constexpr Dim kCount = Lanes<T>::kCount;
  static constexpr auto kBounds = [] {
    std::array<T, 2 * kCount> bounds{};
    std::fill_n(bounds.begin(), kCount, std::numeric_limits<T>::infinity());
    return bounds;
  }();
  return min(e, Lanes<T>::load(&kBounds[static_cast<std::size_t>(kCount - n)]));
}

/// x becomes exp(factor · (x − most)), in whole vectors, for which there must be room; returns Σ x.
template <class T>
T row_exp(T* x, Dim columns, T factor, T most) {
  constexpr Dim kCount = Lanes<T>::kCount;
  const Lanes<T> f(factor), offset(most);
  Lanes<T> total(T(0));
  for (Dim c = 0; c < columns; c += kCount) {
    auto e = exp((Lanes<T>::load(x + c) - offset) * f);
    if (columns - c < kCount) e = first_of(e, columns - c);
    e.store(x + c);
    total += e;
  }
  return sum(total);
}

/// Σ exp(x − most), storing nothing.
template <class T>
Compute<T> row_exp_sum(const T* x, Dim columns, Compute<T> most) {
  using C = Compute<T>;
  const Lanes<C> offset(most);
  Lanes<C> total(C(0));
  for_lanes<C>(columns, [&](Dim c, Dim n) {
    const auto e = exp(Lanes<C>::load(x + c, n) - offset);
    total += n < Lanes<C>::kCount ? first_of(e, n) : e;
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
