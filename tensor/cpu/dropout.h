// The multipliers of a dropout, computed again at each use: nothing is stored between forward and backward.
#pragma once
#include <array>
#include <cstdint>

#include "tensor/backend.h"
#include "tensor/cpu/lanes.h"
#include "tensor/random.h"

namespace bertrand::cpu {

/// Multipliers for 128 neighbouring columns of one row: 0, or the dropout's scale. Element (row, column) looks at 16
/// bits of Philox4x32-10 (Salmon et al. 2011) of the counter (row key, plane, column / 128 · 16 + column % 16): sixteen
/// counters go through the rounds side by side, and vector h of the result takes half h % 2 of word h / 2.
template <class T>
class DropoutGroup {
 public:
  static constexpr Dim kColumns = 128;

  void make(const Dropout& dropout, std::int64_t row_key, std::uint32_t plane, Dim group) {
    alignas(64) std::int32_t drawn[kColumns];  // 16 random bits each
    for (int first = 0; first < 16; first += 2 * kWide)
      philox(dropout.key, row_key, plane, static_cast<std::uint64_t>(group * 16 + first), drawn + first);
    const T scale = static_cast<T>(dropout.scale());
    const auto threshold = static_cast<std::int32_t>(dropout.threshold);
    for (int c = 0; c < kColumns; ++c) values_[c] = drawn[c] >= threshold ? scale : T(0);
  }

  const T* data() const { return values_.data(); }

 private:
  // 32-bit words live in the low halves of 64-bit lanes; what gathers in the high halves is never looked at.
  static constexpr int kWide = static_cast<int>(sizeof(typename Lanes<float>::Packet) / 8);
  typedef std::uint64_t Words __attribute__((vector_size(kWide * 8)));
  typedef std::uint32_t Halves __attribute__((vector_size(kWide * 8)));

  static Words multiply_low_halves(Words a, Words b) {
#if defined(__AVX512F__)
    return (Words)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (Words)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
    return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
  }

  struct Counters {
    Words c0, c1, c2, c3;
  };

  static void rounds(std::uint64_t key, Counters& c) {
    const Words none{};
    for (const auto& [k0, k1] : philox_keys(key)) {
      const Words p0 = multiply_low_halves(c.c0, none + kPhiloxMultiplier0),
                  p1 = multiply_low_halves(c.c2, none + kPhiloxMultiplier1);
      c.c0 = (p1 >> 32) ^ c.c1 ^ (none + k0);
      c.c2 = (p0 >> 32) ^ c.c3 ^ (none + k1);
      c.c1 = p1;
      c.c3 = p0;
    }
  }

  /// Both halves of the four words of 2 · kWide counters in a row, 16 apart in `drawn`. Even and odd counters go
  /// through the rounds apart, so that their low halves interleave into the right order.
  static void philox(std::uint64_t key, std::int64_t row_key, std::uint32_t plane, std::uint64_t counter,
                     std::int32_t* drawn) {
    const Words none{};
    Counters even{none + static_cast<std::uint32_t>(row_key), none + static_cast<std::uint32_t>(row_key >> 32),
                  none + plane, none + counter};
    for (int l = 0; l < kWide; ++l) even.c3[l] += static_cast<std::uint64_t>(2 * l);
    Counters odd = even;
    odd.c3 += 1;
    rounds(key, even);
    rounds(key, odd);
    const auto spread = [&](int word, const Words& e, const Words& o) {
      const Halves both = (Halves)((e & 0xffffffffu) | (o << 32));
      const Halves low = both & 0xffff, high = both >> 16;
      std::memcpy(drawn + 32 * word, &low, sizeof low);
      std::memcpy(drawn + 32 * word + 16, &high, sizeof high);
    };
    spread(0, even.c0, odd.c0);
    spread(1, even.c1, odd.c1);
    spread(2, even.c2, odd.c2);
    spread(3, even.c3, odd.c3);
  }

  alignas(64) std::array<T, kColumns> values_;
};

/// Walks one row: f(column, n, multipliers) in whole vectors; the tail in a padded one.
template <class T, class F>
void for_dropout_row(const Dropout& dropout, std::int64_t row_key, std::uint32_t plane, Dim columns, F&& f) {
  DropoutGroup<T> group;
  for (Dim first = 0; first < columns; first += DropoutGroup<T>::kColumns) {
    group.make(dropout, row_key, plane, first / DropoutGroup<T>::kColumns);
    for_lanes<T>(std::min(DropoutGroup<T>::kColumns, columns - first),
                 [&](Dim c, Dim n) { f(first + c, n, Lanes<T>::load(group.data() + c)); });
  }
}

}  // namespace bertrand::cpu
