// CPython's random.Random, number for number: the order of Google's records hangs on it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "io/error.h"

namespace bertrand::data {

/// The generator of CPython 3.11's `random` module: MT19937 (Matsumoto and Nishimura 1998) seeded by init_by_array, and
/// the methods of random.py on top of it.
class PythonRandom {
 public:
  /// random.Random(seed); as in Python, the sign of the seed does not count.
  explicit PythonRandom(std::int64_t seed);

  /// random(): uniform in [0, 1) with 53 bits.
  double random();
  /// getrandbits(bits), 1 to 64 bits.
  std::uint64_t bits(int bits);
  /// _randbelow(n): uniform in [0, n), n > 0.
  std::uint64_t below(std::uint64_t n);

  /// shuffle(items).
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i-- > 1;) std::swap(items[i], items[below(i + 1)]);
  }
  /// choice(items), not empty.
  template <class T>
  const T& choice(std::span<const T> items) {
    check(!items.empty(), "choice: expected at least one item, got none");
    return items[below(items.size())];
  }

 private:
  static constexpr std::size_t kSize = 624;

  std::uint32_t next();
  void refill();

  std::array<std::uint32_t, kSize> state_;
  std::size_t used_ = kSize;
};

}  // namespace bertrand::data
