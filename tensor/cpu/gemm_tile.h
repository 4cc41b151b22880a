// How a fast matrix product works, in the small: C (+)= A · B for one tile of C that fits in the registers.
//
// Every element of C is one chain of fused multiply-adds over k, from a start value (zero, a bias, or what C holds)
// onward. Cutting k into blocks keeps the chain, because a later block starts from what the earlier one stored. So the
// bits of C depend on nothing but its row of A and its column of B: not on tile sizes, threads or neighbouring rows.
// Products of bf16 are sums of chains, which bf16_panels.h defines; of them the same is true.
#pragma once
#include "tensor/cpu/bf16_panels.h"

namespace bertrand::cpu {

/// Products are computed over at most this many k at a time: a panel of A then stays in the first-level cache, and the
/// panels of B that it meets in the second.
template <class P>
inline constexpr Dim kDepth = kTileVectors > 1 ? 768 : 384;
template <>
inline constexpr Dim kDepth<PairStep> = 1536;  // of half the size
template <>
inline constexpr Dim kDepth<TilePair> = 1024;  // its panel of A has more rows
/// Steps of k that the inner loop is written out for.
inline constexpr int kSteps = 2;

/// What a chain starts from: zero, what C holds, or one value for each column.
enum class Start { zero, value, row };

/// What the registers hold of C: `Vectors` vectors V of each row.
template <class P, class V, int Vectors>
using Tile = V[kTileRows<P>][Vectors];

/// Calls f with what holds `columns`, or a whole tile of them, as constants: how many vectors, and which. An edge of C
/// does not pay for a whole tile, and a text of eight tokens not for the other half of a vector.
template <class P, class C, class F>
void for_vectors(Dim columns, F&& f) {
  using Whole = Lanes<C>;
  using Half = Lanes<C, 32>;
  constexpr int kMost = kTileColumns<P> / Whole::kCount;
  if constexpr (!std::is_same_v<P, TilePair>)
    if (columns <= Half::kCount) return f.template operator()<1, Half>();
  if constexpr (kMost >= 4)
    if (columns > 3 * Whole::kCount) return f.template operator()<4, Whole>();
  if constexpr (kMost >= 3)
    if (columns > 2 * Whole::kCount) return f.template operator()<3, Whole>();
  if constexpr (kMost >= 2)
    if (columns > Whole::kCount) return f.template operator()<2, Whole>();
  f.template operator()<1, Whole>();
}

/// One k of the inner loop.
template <class P, class V, int Vectors>
inline __attribute__((always_inline)) void multiply_step(View<P>& a, const P*& b, Tile<P, V, Vectors>& c) {
  using Factors = Lanes<P, sizeof(V)>;
  Factors column[Vectors];
#pragma GCC unroll 4
  for (int j = 0; j < Vectors; ++j) column[j] = Factors::load(b + j * Factors::kCount);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows<P>; ++i) {
    const Factors row(a.data[i * a.row_stride]);
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) c[i][j] = fma(row, column[j], c[i][j]);
  }
  a.data += a.column_stride;
  b += Vectors * Factors::kCount;
}

/// The inner loop: accumulators += kTileRows rows of A · panel of B. A is a packed panel, or lies in memory as it is.
/// `next`, if it is given, is where such rows of A lie that come next: they are fetched into the second-level cache, a
/// line with each turn of the loop. The processor does not foresee that six runs of memory end and six others begin.
template <class P, class V, int Vectors>
inline __attribute__((always_inline)) void multiply_panels(Dim depth, View<P> a, const P* b, Tile<P, V, Vectors>& c,
                                                           const P* next = nullptr) {
  const Dim row_stride = a.row_stride;
  Dim k = 0;
  const auto multiply_until = [&](Dim end, const P* line) __attribute__((always_inline)) {
    for (; k + kSteps <= end; k += kSteps) {
      if (line) __builtin_prefetch(line, 0, 2), line += 64 / sizeof(P);
#pragma GCC unroll 8
      for (int u = 0; u < kSteps; ++u) multiply_step<P, V, Vectors>(a, b, c);
    }
  };
  if (next)
    for (int i = 0; i < kTileRows<P>; ++i) multiply_until((i + 1) * depth / kTileRows<P>, next + i * row_stride);
  multiply_until(depth, nullptr);
  for (; k < depth; ++k) multiply_step<P, V, Vectors>(a, b, c);
}

/// Every element of the tile becomes f(i, j).
template <class P, int Vectors, class F>
inline __attribute__((always_inline)) void for_tile(F&& f) {
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows<P>; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) f(i, j);
}

/// tile += A · B of whole blocks of bf16, each two chains from zero (bf16_panels.h): in turn if both fit the registers,
/// else one after the other.
template <class P, class V, int Vectors>
inline __attribute__((always_inline)) void add_blocks(Dim steps, View<P> a, const P* b, Tile<P, V, Vectors>& tile) {
  constexpr int kChain = P::kBlockSteps / 2;
  constexpr Dim kWidth = Vectors * V::kCount;
  constexpr bool kInTurn = kTileVectors > 1 && 2 * kTileRows<P> * Vectors <= 24;
  for (Dim step = 0; step < steps; step += 2 * kChain, a = a.block(0, 2 * kChain), b += 2 * kChain * kWidth) {
    Tile<P, V, Vectors> even, odd;
    View<P> a_even = a, a_odd = a.block(0, kChain);
    const P *b_even = b, *b_odd = b + kChain * kWidth;
    for_tile<P, Vectors>([&](int i, int j) { even[i][j] = V(0); });
    if constexpr (!kInTurn) multiply_panels<P, V, Vectors>(kChain, a_even, b_even, even);
    for_tile<P, Vectors>([&](int i, int j) { odd[i][j] = V(0); });
    if constexpr (!kInTurn) multiply_panels<P, V, Vectors>(kChain, a_odd, b_odd, odd);
#pragma GCC unroll 8
    for (int k = 0; kInTurn && k < kChain; ++k) {
      multiply_step<P, V, Vectors>(a_even, b_even, even);
      multiply_step<P, V, Vectors>(a_odd, b_odd, odd);
    }
    for_tile<P, Vectors>([&](int i, int j) { tile[i][j] += even[i][j] + odd[i][j]; });
  }
}

/// One tile of C at `c` of whole vectors V; `row` holds the values of Start::row. A and `next` are as multiply_panels
/// takes them; products of bf16 fetch nothing ahead.
template <int Vectors, class V, class P, class T>
void compute_tile(Dim depth, const View<P>& a, const P* b, T* c, Dim c_stride, Start start, const T* row,
                  const P* next = nullptr) {
  constexpr int kCount = V::kCount;
  Tile<P, V, Vectors> tile;
  for_tile<P, Vectors>([&](int i, int j) {
    tile[i][j] = start == Start::zero    ? V(0)
                 : start == Start::value ? V::load(c + i * c_stride + j * kCount)
                                         : V::load(row + j * kCount);
  });
  if constexpr (std::is_same_v<P, T>) multiply_panels<P, V, Vectors>(depth, a, b, tile, next);
  else add_blocks<P, V, Vectors>(steps_of<P>(depth), View<P>{a.data, a.row_stride, 1}, b, tile);
  for_tile<P, Vectors>([&](int i, int j) { tile[i][j].store(c + i * c_stride + j * kCount); });
}

/// The same on the tile unit, 2 × 2 tiles: each that is loaded is used twice. B streams by, A is used again by the next
/// columns of B.
template <int, class>
void compute_tile(Dim depth, const View<TilePair>& a, const TilePair* b, float* c, Dim c_stride, Start start,
                  const float* row, const TilePair* /*next*/ = nullptr) {
  constexpr Dim kRows = tiles::kRows, kRowBytes = tiles::kRowBytes, kRowWords = kRowBytes / 4,
                kWords = kRows * kRowWords;
  const Dim steps = ceiling(depth, kBf16Block), stride = c_stride * static_cast<Dim>(sizeof(float)),
            a_stride = a.row_stride * static_cast<Dim>(sizeof(TilePair));
  const TilePair *a1 = a.data, *a2 = a.data + kRows * a.row_stride, *b2 = b + steps * kWords;
  float* const c2 = c + kRows * c_stride;
  if (start == Start::zero) {
    tiles::zero<0>(), tiles::zero<1>(), tiles::zero<2>(), tiles::zero<3>();
  } else {
    const bool same = start == Start::row;  // for every row of C
    const float *const from = same ? row : c, *const from2 = same ? row : c2;
    tiles::load<0>(from, same ? 0 : stride), tiles::load<1>(from + kRows, same ? 0 : stride);
    tiles::load<2>(from2, same ? 0 : stride), tiles::load<3>(from2 + kRows, same ? 0 : stride);
  }
  for (Dim step = 0; step < steps; ++step, a1 += kRowWords, a2 += kRowWords, b += kWords, b2 += kWords) {
    tiles::load_streamed<6>(b, kRowBytes), tiles::load<4>(a1, a_stride), tiles::multiply<0, 4, 6>();
    tiles::load_streamed<7>(b2, kRowBytes), tiles::multiply<1, 4, 7>();
    tiles::load<5>(a2, a_stride), tiles::multiply<2, 5, 6>(), tiles::multiply<3, 5, 7>();
  }
  tiles::store<0>(c, stride), tiles::store<1>(c + kRows, stride);
  tiles::store<2>(c2, stride), tiles::store<3>(c2 + kRows, stride);
}

/// A tile that overhangs the edge of C goes through a whole one on the side.
template <class P, class T>
void compute_edge_tile(Dim depth, const View<P>& a, const P* b, T* c, Dim c_stride, Dim rows, Dim columns, Start start,
                       const T* row) {
  constexpr int kColumns = kTileColumns<P>;
  alignas(64) T whole[kTileRows<P> * kColumns] = {};
  alignas(64) T whole_row[kColumns] = {};
  if (start == Start::value)
    for (Dim i = 0; i < rows; ++i) std::copy_n(c + i * c_stride, columns, whole + i * kColumns);
  if (start == Start::row) std::copy_n(row, columns, whole_row);
  for_vectors<P, T>(columns, [&]<int Vectors, class V>() {
    compute_tile<Vectors, V>(depth, a, b, whole, kColumns, start, whole_row);
  });
  for (Dim i = 0; i < rows; ++i) std::copy_n(whole + i * kColumns, columns, c + i * c_stride);
}

/// Columns of C that are written at once: a product of whole ones needs no tile on the side.
template <class P, class T>
inline constexpr Dim kWholeColumns = std::is_same_v<P, TilePair> ? kTileColumns<P> : Lanes<T>::kCount;

/// A product of prepared operands: C (+)= A · B.
template <class P, class T>
struct PreparedProduct {
  Dim rows, columns, depth;
  LeftPanels<P> a;
  const P* b;  ///< columns/kTileColumns panels, b_panel elements apart
  Dim b_panel;
  T* c;
  Dim c_stride;
  Dim c_panel;  ///< from the rows of one panel of A to the next, kTileRows · c_stride; 0: all come to the same place
  Start start;
  const T* row = nullptr;  ///< of Start::row
};

/// Panels of A are the outer loop: one stays in the first-level cache while all of B, in the second, passes by. Calls
/// begin(i, m, c) before and finish(i, m, c) after the m rows from i on, which are computed at c.
template <class P, class T, class Begin, class Finish>
void multiply_prepared(const PreparedProduct<P, T>& p, const Begin& begin, const Finish& finish) {
  T* c = p.c;
  for (Dim i = 0; i < p.rows; i += kTileRows<P>, c += p.c_panel) {
    const Dim m = std::min<Dim>(kTileRows<P>, p.rows - i);
    const View<P> a = p.a.panel(i, m);
    const P* b = p.b;
    begin(i, m, c);
    {
      [[maybe_unused]] const Arithmetic<P> arithmetic;
      for (Dim j = 0; j < p.columns; j += kTileColumns<P>, b += p.b_panel) {
        const T* row = p.start == Start::row ? p.row + j : nullptr;
        const Dim n = std::min<Dim>(kTileColumns<P>, p.columns - j);
        if (m == kTileRows<P> && n % kWholeColumns<P, T> == 0)
          for_vectors<P, T>(n, [&]<int Vectors, class V>() {
            compute_tile<Vectors, V>(p.depth, a, b, c + j, p.c_stride, p.start, row);
          });
        else compute_edge_tile(p.depth, a, b, c + j, p.c_stride, m, n, p.start, row);
      }
    }
    finish(i, m, c);
  }
}

}  // namespace bertrand::cpu
