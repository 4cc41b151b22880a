// How a fast matrix product works, in the small: C (+)= A · B for one tile of C that fits in the registers.
//
// Every element of C is one chain of fused multiply-adds over k, from a start value (zero, a bias, or what C holds)
// onward. Cutting k into blocks keeps the chain, because a later block starts from what the earlier one stored. So the
// bits of C depend on nothing but its row of A and its column of B: not on tile sizes, threads or neighbouring rows.
// Products of bf16 are sums of chains, which bf16_panels.h defines; of them the same is true.
#pragma once
#include <utility>

#include "tensor/cpu/bf16_panels.h"

namespace bertrand::cpu {

/// Products are computed over at most this many k at a time: a panel of A then stays in the first-level cache, and the
/// panels of B that it meets in the second.
inline constexpr Dim kDepth = kTileVectors > 1 ? 768 : 384;
/// Steps of k that the inner loop is written out for.
inline constexpr int kSteps = 2;

/// What a chain starts from: zero, what C holds, or one value for each column (a row of them) or row of C.
enum class Start { zero, value, row, column };

template <class P, class T, int Vectors>
using Tile = Lanes<T>[kTileRows<P>][Vectors];

/// Calls f with the number of vectors that hold `columns` as a constant: an edge of C does not pay for a whole tile.
template <class T, class F>
void for_vectors(Dim columns, F&& f) {
  if constexpr (kTileVectors >= 4)
    if (columns > 3 * Lanes<T>::kCount) return f.template operator()<4>();
  if constexpr (kTileVectors >= 3)
    if (columns > 2 * Lanes<T>::kCount) return f.template operator()<3>();
  if constexpr (kTileVectors >= 2)
    if (columns > Lanes<T>::kCount) return f.template operator()<2>();
  f.template operator()<1>();
}

/// One k of the inner loop.
template <class P, class T, int Vectors>
inline __attribute__((always_inline)) void multiply_step(View<P>& a, const P*& b, Tile<P, T, Vectors>& c) {
  Lanes<P> column[Vectors];
#pragma GCC unroll 4
  for (int j = 0; j < Vectors; ++j) column[j] = Lanes<P>::load(b + j * Lanes<P>::kCount);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows<P>; ++i) {
    const Lanes<P> row(a.data[i * a.row_stride]);
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) c[i][j] = fma(row, column[j], c[i][j]);
  }
  a.data += a.column_stride;
  b += kTileColumns<P>;
}

/// The inner loop: accumulators += kTileRows rows of A · panel of B. A is a packed panel, or lies in memory as it is.
/// `next`, if it is given, is where such rows of A lie that come next: they are fetched into the second-level cache, a
/// line with each turn of the loop. The processor does not foresee that six runs of memory end and six others begin.
template <class P, class T, int Vectors>
inline __attribute__((always_inline)) void multiply_panels(Dim depth, View<P> a, const P* b, Tile<P, T, Vectors>& c,
                                                           const P* next = nullptr) {
  const Dim row_stride = a.row_stride;
  Dim k = 0;
  const auto multiply_until = [&](Dim end, const P* line) __attribute__((always_inline)) {
    for (; k + kSteps <= end; k += kSteps) {
      if (line) __builtin_prefetch(line, 0, 2), line += 64 / sizeof(P);
#pragma GCC unroll 8
      for (int u = 0; u < kSteps; ++u) multiply_step<P, T, Vectors>(a, b, c);
    }
  };
  if (next)
    for (int i = 0; i < kTileRows<P>; ++i) multiply_until((i + 1) * depth / kTileRows<P>, next + i * row_stride);
  multiply_until(depth, nullptr);
  for (; k < depth; ++k) multiply_step<P, T, Vectors>(a, b, c);
}

/// Every element of the tile becomes f(i, j).
template <class P, class T, int Vectors, class F>
inline __attribute__((always_inline)) void for_tile(F&& f) {
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows<P>; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) f(i, j);
}

/// tile += A · B of whole blocks of bf16, each two chains from zero (bf16_panels.h).
template <class P, class T, int Vectors>
inline __attribute__((always_inline)) void add_blocks(Dim steps, const P* a, const P* b, Tile<P, T, Vectors>& tile) {
  constexpr int kChain = P::kBlockSteps / 2;
  for (Dim step = 0; step < steps; step += 2 * kChain) {
    Tile<P, T, Vectors> even, odd;
    for_tile<P, T, Vectors>([&](int i, int j) { even[i][j] = Lanes<T>(T(0)); });
    multiply_panels<P, T, Vectors>(kChain, View<P>{a, 1, kTileRows<P>}, b, even);
    a += kChain * kTileRows<P>;
    b += kChain * kTileColumns<P>;
    for_tile<P, T, Vectors>([&](int i, int j) { odd[i][j] = Lanes<T>(T(0)); });
    multiply_panels<P, T, Vectors>(kChain, View<P>{a, 1, kTileRows<P>}, b, odd);
    a += kChain * kTileRows<P>;
    b += kChain * kTileColumns<P>;
    for_tile<P, T, Vectors>([&](int i, int j) { tile[i][j] += even[i][j] + odd[i][j]; });
  }
}

/// One tile of C at `c` of whole vectors; `starts` holds the values of Start::row or Start::column. A and `next` are as
/// multiply_panels takes them.
template <int Vectors, class P, class T>
void compute_tile(Dim depth, const View<P>& a, const P* b, T* c, Dim c_stride, Start start, const T* starts,
                  const P* next = nullptr) {
  constexpr int kCount = Lanes<T>::kCount;
  Tile<P, T, Vectors> tile;
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows<P>; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j)
      tile[i][j] = start == Start::zero    ? Lanes<T>(T(0))
                   : start == Start::value ? Lanes<T>::load(c + i * c_stride + j * kCount)
                   : start == Start::row   ? Lanes<T>::load(starts + j * kCount)
                                           : Lanes<T>(starts[i]);
  if constexpr (std::is_same_v<P, T>) multiply_panels<P, T, Vectors>(depth, a, b, tile, next);
  else add_blocks<P, T, Vectors>(steps_of<P>(depth), a.data, b, tile);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows<P>; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) tile[i][j].store(c + i * c_stride + j * kCount);
}
template <int Vectors, class P, class T>
void compute_tile(Dim depth, const P* a, const P* b, T* c, Dim c_stride, Start start, const T* starts) {
  compute_tile<Vectors>(depth, View<P>{a, 1, kTileRows<P>}, b, c, c_stride, start, starts);
}

/// The same on the tile unit, 2 × 2 tiles: each that is loaded is used twice. B streams by, A is used again by the next
/// columns of B.
template <int>
void compute_tile(Dim depth, const TilePair* a, const TilePair* b, float* c, Dim c_stride, Start start,
                  const float* row) {
  constexpr Dim kWords = tiles::kRows * tiles::kRowBytes / 4, kRows = tiles::kRows, kRow = tiles::kRowBytes;
  const Dim steps = ceiling(depth, kBf16Block), stride = c_stride * static_cast<Dim>(sizeof(float));
  const TilePair *const a2 = a + steps * kWords, *const b2 = b + steps * kWords;
  float* const c2 = c + kRows * c_stride;
  if (start == Start::zero) {
    tiles::zero<0>(), tiles::zero<1>(), tiles::zero<2>(), tiles::zero<3>();
  } else {
    const bool same = start == Start::row;  // for every row of C
    const float *const from = same ? row : c, *const from2 = same ? row : c2;
    tiles::load<0>(from, same ? 0 : stride), tiles::load<1>(from + kRows, same ? 0 : stride);
    tiles::load<2>(from2, same ? 0 : stride), tiles::load<3>(from2 + kRows, same ? 0 : stride);
  }
  for (Dim at = 0; at < steps * kWords; at += kWords) {
    tiles::load_streamed<6>(b + at, kRow), tiles::load<4>(a + at, kRow), tiles::multiply<0, 4, 6>();
    tiles::load_streamed<7>(b2 + at, kRow), tiles::multiply<1, 4, 7>();
    tiles::load<5>(a2 + at, kRow), tiles::multiply<2, 5, 6>(), tiles::multiply<3, 5, 7>();
  }
  tiles::store<0>(c, stride), tiles::store<1>(c + kRows, stride);
  tiles::store<2>(c2, stride), tiles::store<3>(c2 + kRows, stride);
}

/// A tile that overhangs the edge of C goes through a whole one on the side.
template <class P, class T>
void compute_edge_tile(Dim depth, const P* a, const P* b, T* c, Dim c_stride, Dim rows, Dim columns, Start start,
                       const T* row) {
  constexpr int kColumns = kTileColumns<P>;
  alignas(64) T whole[kTileRows<P> * kColumns] = {};
  alignas(64) T whole_row[kColumns] = {};
  if (start == Start::value)
    for (Dim i = 0; i < rows; ++i) std::copy_n(c + i * c_stride, columns, whole + i * kColumns);
  if (start == Start::row) std::copy_n(row, columns, whole_row);
  for_vectors<P>(columns,
                 [&]<int Vectors>() { compute_tile<Vectors>(depth, a, b, whole, kColumns, start, whole_row); });
  for (Dim i = 0; i < rows; ++i) std::copy_n(whole + i * kColumns, columns, c + i * c_stride);
}

/// C [rows, columns] from packed panels: `a` holds rows/kTileRows panels a_panel apart, `b` likewise of columns. Panels
/// of A are the outer loop: one stays in the first-level cache while all of B, in the second, passes by.
template <class P, class T>
void multiply_packed(Dim rows, Dim columns, Dim depth, const P* a, Dim a_panel, const P* b, Dim b_panel, T* c,
                     Dim c_stride, Start start, const std::type_identity_t<T>* row) {
  constexpr Dim kWhole = std::is_same_v<P, TilePair> ? kTileColumns<P> : Lanes<T>::kCount;  // columns written at once
  for (Dim i = 0; i < rows; i += kTileRows<P>, a += a_panel) {
    const P* panel = b;
    for (Dim j = 0; j < columns; j += kTileColumns<P>, panel += b_panel) {
      T* tile = c + i * c_stride + j;
      const T* start_row = start == Start::row ? row + j : nullptr;
      const Dim m = std::min<Dim>(kTileRows<P>, rows - i), n = std::min<Dim>(kTileColumns<P>, columns - j);
      if (m == kTileRows<P> && n % kWhole == 0)
        for_vectors<T>(
            n, [&]<int Vectors>() { compute_tile<Vectors>(depth, a, panel, tile, c_stride, start, start_row); });
      else compute_edge_tile(depth, a, panel, tile, c_stride, m, n, start, start_row);
    }
  }
}

}  // namespace bertrand::cpu
