// The vector type of every CPU kernel: 64 bytes, whatever the processor. One AVX-512 register, two of AVX2, four of
// NEON. Because sums run over the same number of partial sums everywhere, results have the same bits on every
// processor.
#pragma once
#include <Eigen/Core>
#include <algorithm>
#include <cstring>

#include "tensor/cpu/half_packets.h"

namespace bertrand::cpu {

/// 16 floats or 8 doubles held in as many of the processor's registers as that takes; of kBytes = 32 half as many, for
/// a product that would leave the others empty. Memory may also hold the half types: they are widened when loaded and
/// rounded when stored, and no arithmetic is ever done in them.
template <class T, std::size_t kBytes = 64>
struct Lanes {
  static constexpr int kCount = static_cast<int>(kBytes / sizeof(T));
  using Packet = typename Eigen::internal::find_best_packet<T, kCount>::type;
  static constexpr int kPackets = static_cast<int>(kBytes / sizeof(Packet));
  static constexpr int kPacketSize = kCount / kPackets;

  Packet packets[kPackets];

  Lanes() = default;
  Lanes(T value) {  // NOLINT: a number is the same number in every lane
    for (auto& p : packets) p = Eigen::internal::pset1<Packet>(value);
  }

  template <class Stored>
  [[gnu::always_inline]] static Lanes load(const Stored* from) {
    Lanes x;
    for (int i = 0; i < kPackets; ++i) x.packets[i] = load_packet<Packet>(from + i * kPacketSize);
    return x;
  }
  template <class Stored>
  [[gnu::always_inline]] void store(Stored* to) const {
    for (int i = 0; i < kPackets; ++i) store_packet(packets[i], to + i * kPacketSize);
  }
  /// The first n lanes from memory, `padding` in the others: tails go the same way as whole vectors.
  template <class Stored>
  [[gnu::always_inline]] static Lanes load(const Stored* from, std::int64_t n, T padding = T(0)) {
    return n >= kCount ? load(from) : load_tail(from, n, padding);  // a whole vector is no tail for speed alone
  }
  template <class Stored>
  [[gnu::always_inline]] void store(Stored* to, std::int64_t n) const {
    n >= kCount ? store(to) : store_tail(to, n);
  }

  // Out of line: a loop of whole vectors must not make room for them.
  template <class Stored>
  [[gnu::noinline]] static Lanes load_tail(const Stored* from, std::int64_t n, T padding) {
    alignas(64) T buffer[kCount];
    for (int i = 0; i < kCount; ++i) buffer[i] = i < n ? static_cast<T>(from[i]) : padding;
    return load(buffer);
  }
  template <class Stored>
  [[gnu::noinline]] void store_tail(Stored* to, std::int64_t n) const {
    alignas(64) Stored buffer[kCount];
    store(buffer);
    std::memcpy(static_cast<void*>(to), buffer, static_cast<std::size_t>(n) * sizeof(Stored));
  }

  /// Applies a packet function lane by lane.
  template <class F>
  static Lanes map(F&& f, const Lanes& a) {
    Lanes y;
    for (int i = 0; i < kPackets; ++i) y.packets[i] = f(a.packets[i]);
    return y;
  }
  template <class F>
  static Lanes map(F&& f, const Lanes& a, const Lanes& b) {
    Lanes y;
    for (int i = 0; i < kPackets; ++i) y.packets[i] = f(a.packets[i], b.packets[i]);
    return y;
  }

  friend Lanes operator+(const Lanes& a, const Lanes& b) {
    return map([](auto x, auto y) { return Eigen::internal::padd(x, y); }, a, b);
  }
  friend Lanes operator-(const Lanes& a, const Lanes& b) {
    return map([](auto x, auto y) { return Eigen::internal::psub(x, y); }, a, b);
  }
  friend Lanes operator*(const Lanes& a, const Lanes& b) {
    return map([](auto x, auto y) { return Eigen::internal::pmul(x, y); }, a, b);
  }
  friend Lanes operator/(const Lanes& a, const Lanes& b) {
    return map([](auto x, auto y) { return Eigen::internal::pdiv(x, y); }, a, b);
  }
  friend Lanes operator-(const Lanes& a) {
    return map([](auto x) { return Eigen::internal::pnegate(x); }, a);
  }
  Lanes& operator+=(const Lanes& b) { return *this = *this + b; }
};

/// a · b + c, rounded once: the only way products are summed here, so the compiler has no choice to make.
template <class T, std::size_t kBytes>
Lanes<T, kBytes> fma(const Lanes<T, kBytes>& a, const Lanes<T, kBytes>& b, const Lanes<T, kBytes>& c) {
  Lanes<T, kBytes> y;
  for (int i = 0; i < y.kPackets; ++i) y.packets[i] = Eigen::internal::pmadd(a.packets[i], b.packets[i], c.packets[i]);
  return y;
}
/// A NaN in `a` stays (the processor returns the second operand of an unordered pair, and Eigen passes `a` there).
template <class T>
Lanes<T> max(const Lanes<T>& a, const Lanes<T>& b) {
  return Lanes<T>::map([](auto x, auto y) { return Eigen::internal::pmax(x, y); }, a, b);
}
template <class T>
Lanes<T> min(const Lanes<T>& a, const Lanes<T>& b) {
  return Lanes<T>::map([](auto x, auto y) { return Eigen::internal::pmin(x, y); }, a, b);
}
template <class T>
Lanes<T> sqrt(const Lanes<T>& a) {
  return Lanes<T>::map([](auto x) { return Eigen::internal::psqrt(x); }, a);
}

/// Sum of all lanes, in one fixed tree.
template <class T>
T sum(const Lanes<T>& x) {
  alignas(64) T a[Lanes<T>::kCount];
  x.store(a);
  for (int width = Lanes<T>::kCount / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) a[i] += a[i + width];
  return a[0];
}
template <class T>
T max(const Lanes<T>& x) {
  alignas(64) T a[Lanes<T>::kCount];
  x.store(a);
  T most = a[0];
  for (const T v : a) most = std::max(most, v);
  return most;
}

/// Calls f(column, n) for [0, columns) in steps of one vector; n < kCount only in the last. Both calls of f are
/// inlined, so that its constants stay in registers: cross entropy takes 0.9 of the time with AVX2.
template <class T, class F>
[[gnu::flatten]] void for_lanes(std::int64_t columns, F&& f) {
  constexpr std::int64_t kStep = Lanes<T>::kCount;
  std::int64_t c = 0;
  for (; c + kStep <= columns; c += kStep) f(c, kStep);
  if (c < columns) f(c, columns - c);
}

}  // namespace bertrand::cpu
