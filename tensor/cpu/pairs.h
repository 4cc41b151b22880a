// How products of bf16 are summed: in pairs of neighbours along the depth, as processors with AVX512_BF16 do it in one
// instruction (vdpbf16ps),
//
//   c ← c + a(k + 1) · b(k + 1), then c ← c + a(k) · b(k)
//
// each rounded to the nearest f32, while numbers below 2^-126, given or made, are 0. Other processors do the same in
// two fused multiply-adds of numbers that were widened, so that a product of bf16 has the same bits on all of them.
#pragma once
#include "tensor/cpu/gemm_tile.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace bertrand::cpu {

#if defined(__AVX512BF16__)
/// x(k) and x(k + 1), multiplied in one step.
struct Pair {
  BFloat16 first, second;
};
using PairElement = Pair;
constexpr Dim steps_of_pairs(Dim depth) { return ceiling(depth, 2); }
template <int Width>
void store_pair(BFloat16 first, BFloat16 second, Pair* panel) {
  *panel = {first, second};
}
#else
/// Of each pair first the second, then the first: two steps.
using PairElement = float;
constexpr Dim steps_of_pairs(Dim depth) { return round_up(depth, 2); }
template <int Width>
void store_pair(BFloat16 first, BFloat16 second, float* panel) {
  panel[0] = static_cast<float>(second);
  panel[Width] = static_cast<float>(first);
}
#endif

/// An operand of bf16 that is packed Width rows to a panel, in pieces that threads share; zeros beyond rows and depth.
template <int Width>
struct PairPacking {
  View<BFloat16> x;
  Dim rows, depth;
  PairElement* panels;

  Dim pieces() const { return ceiling(rows, kGroup); }
  void pack(Dim piece) const {
    for (Dim i = piece * kGroup; i < std::min(rows, (piece + 1) * kGroup); i += Width)
      pack_panel(x.block(i, 0), std::min<Dim>(Width, rows - i),
                 panels + i / Width * panel_size<Width, PairElement>(steps_of_pairs(depth)));
  }

 private:
  static constexpr Dim kGroup = 8 * Width, kStep = steps_of_pairs(2) * Width;

  void pack_panel(const View<BFloat16>& from, Dim width, PairElement* panel) const {
    for (Dim k = 0; k < depth; k += 2, panel += kStep)
      for (Dim i = 0; i < Width; ++i) {
        const BFloat16* const first = from.data + i * from.row_stride + k * from.column_stride;
        if (i >= width) store_pair<Width>({}, {}, panel + i);
        else store_pair<Width>(*first, k + 1 < depth ? first[from.column_stride] : BFloat16(), panel + i);
      }
  }
};

#if defined(__AVX512BF16__)
template <>
struct Lanes<Pair> {
  static constexpr int kCount = 16;

  __m512bh pairs;

  Lanes() = default;
  Lanes(Pair pair) : pairs(same_bits<__m512bh>(_mm512_set1_epi32(same_bits<int>(pair)))) {}  // NOLINT: as all Lanes
  static Lanes load(const Pair* from) {
    Lanes x;
    x.pairs = same_bits<__m512bh>(_mm512_loadu_si512(from));
    return x;
  }
};

/// Both products of every pair added to c.
inline Lanes<float> fma(const Lanes<Pair>& a, const Lanes<Pair>& b, const Lanes<float>& c) {
  Lanes<float> y;
  y.packets[0] = _mm512_dpbf16_ps(c.packets[0], a.pairs, b.pairs);
  return y;
}
#endif

/// The mode that a thread is in, while this lives, so that products of T are what they are defined to be.
template <class T>
struct Arithmetic {};

#if defined(__SSE__) && !defined(__AVX512BF16__)
/// The instruction knows no subnormal numbers in any mode; fused multiply-adds do.
template <>
struct Arithmetic<BFloat16> {
  Arithmetic() { _mm_setcsr(before | kResultsAreZero | kOperandsAreZero); }
  ~Arithmetic() { _mm_setcsr(before); }
  Arithmetic(const Arithmetic&) = delete;
  Arithmetic& operator=(const Arithmetic&) = delete;

 private:
  static constexpr unsigned kResultsAreZero = 1u << 15, kOperandsAreZero = 1u << 6;
  const unsigned before = _mm_getcsr();
};
#endif

}  // namespace bertrand::cpu
