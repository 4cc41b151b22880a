// How a fast matrix product works, in the small: C (+)= A · B for one tile of C that fits in the registers.
//
// Every element of C is one chain of fused multiply-adds over k, from a start value (zero, a bias, or what C holds)
// onward. Cutting k into blocks keeps the chain, because a later block starts from what the earlier one stored. So the
// bits of C depend on nothing but its row of A and its column of B: not on tile sizes, threads or neighbouring rows.
//
// Operands are packed first: A into panels of kTileRows rows, B into panels of kTileColumns columns, both with k as the
// slow index, so that the inner loop reads memory in order. Packing absorbs transposes, and widens the half types:
// panels and everything after them are of Compute<T>. Only products of bf16 are packed otherwise (pairs.h).
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "tensor/cpu/lanes.h"
#include "tensor/shape.h"

namespace bertrand::cpu {

inline constexpr int kTileRows = 6;
#if defined(__AVX512F__)
inline constexpr int kTileVectors = 4;  // 6 × 4 accumulators + 4 of B + 1 of A of 32 registers
#else
inline constexpr int kTileVectors = 1;  // 6 × 2 accumulators + 2 of B + 1 of A of 16 registers
#endif
template <class T>
inline constexpr int kTileColumns = kTileVectors* Lanes<T>::kCount;

/// Products are computed over at most this many k at a time: a panel of A then stays in the first-level cache, and the
/// panels of B that it meets in the second.
inline constexpr Dim kDepth = kTileVectors > 1 ? 768 : 384;
/// Steps of k that the inner loop is written out for.
inline constexpr int kSteps = 2;

/// A matrix in memory, one of whose strides is 1: element (i, j) is data[i · row_stride + j · column_stride].
template <class T>
struct View {
  const T* data;
  Dim row_stride, column_stride;

  View block(Dim row, Dim column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
  View transposed() const { return {data, column_stride, row_stride}; }
};

/// n / d, rounded up.
constexpr Dim ceiling(Dim n, Dim d) { return (n + d - 1) / d; }
constexpr Dim round_up(Dim n, Dim multiple) { return ceiling(n, multiple) * multiple; }

/// Elements that one packed panel takes; a store may reach one vector beyond depth · Width.
template <int Width, class T>
constexpr Dim panel_size(Dim depth) {
  return (depth * Width + Lanes<T>::kCount + 15) / 16 * 16;
}

/// Copies neighbours, widening the half types.
template <int Count, class T>
void widen(const T* from, Compute<T>* to) {
  if constexpr (std::is_same_v<T, Compute<T>>) std::memcpy(to, from, Count * sizeof(T));
  else
    for (int i = 0; i < Count; ++i) to[i] = Compute<T>(from[i]);
}

/// One panel, `width` ≤ Width rows of x by `depth` columns: panel[k · Width + i] = x(i, k), zeros beyond `width`.
template <int Width, class T, class C = Compute<T>>
[[gnu::flatten]] void pack_panel(const View<T>& x, Dim width, Dim depth, C* panel) {
  using Packet = typename Lanes<C>::Packet;
  constexpr int kSize = Lanes<C>::kPacketSize;
  Dim k = 0;
  if (width < Width) {
    std::fill_n(panel, Width * depth, C(0));
    for (Dim i = 0; i < width; ++i)
      for (k = 0; k < depth; ++k) panel[k * Width + i] = C(x.data[i * x.row_stride + k * x.column_stride]);
    return;
  }
  // Each row is contiguous in k: turn squares of kSize × kSize in registers.
  using Half = typename Eigen::internal::unpacket_traits<Packet>::half;
  constexpr int kHalf = static_cast<int>(sizeof(Half) / sizeof(C));
  if constexpr (Width <= kHalf && kHalf < kSize && std::is_same_v<T, C>) {
    if (x.column_stride == 1)
      for (; k + kHalf <= depth; k += kHalf) {
        Eigen::internal::PacketBlock<Half, kHalf> square;
        for (int i = 0; i < kHalf; ++i)
          square.packet[i] = Eigen::internal::ploadu<Half>(x.data + std::min(i, Width - 1) * x.row_stride + k);
        Eigen::internal::ptranspose(square);  // what is stored beyond Width, the next k overwrites
        for (int j = 0; j < kHalf; ++j) Eigen::internal::pstoreu(panel + (k + j) * Width, square.packet[j]);
      }
  } else if constexpr (Width <= kSize || Width % kSize == 0) {
    if (x.column_stride == 1) {
      const Dim squares = depth / kSize * kSize;
      for (int first = 0; first < Width; first += kSize)
        for (k = 0; k < squares; k += kSize) {
          Eigen::internal::PacketBlock<Packet, kSize> square;
          for (int i = 0; i < kSize; ++i) {
            const Dim row = std::min(first + i, Width - 1);  // what is stored beyond Width, the next k overwrites
            square.packet[i] = load_packet<Packet>(x.data + row * x.row_stride + k);
          }
          Eigen::internal::ptranspose(square);
          for (int j = 0; j < kSize; ++j) Eigen::internal::pstoreu(panel + (k + j) * Width + first, square.packet[j]);
        }
    }
  }
  for (; k < depth; ++k)
    for (Dim i = 0; i < Width; ++i) panel[k * Width + i] = C(x.data[i * x.row_stride + k * x.column_stride]);
}

/// An operand that is packed Width rows to a panel, in pieces that threads share.
template <int Width, class T>
struct Packing {
  View<T> x;
  Dim rows, depth;
  Compute<T>* panels;

  Dim panel() const { return panel_size<Width, Compute<T>>(depth); }  ///< elements from one panel to the next
  Dim pieces() const { return along_depth() ? (depth + kSlice - 1) / kSlice : (rows + kGroup - 1) / kGroup; }

  /// A piece reads runs of memory as long as there are: whole k where neighbours are rows, else whole rows.
  void pack(Dim piece) const {
    if (along_depth()) {
      const Dim first = piece * kSlice, slice = std::min(kSlice, depth - first), whole = rows / Width;
      for (Dim k = first; k < first + slice; ++k)
        for (Dim p = 0; p < whole; ++p)
          widen<Width>(x.data + k * x.column_stride + p * Width, panels + p * panel() + k * Width);
      if (whole * Width < rows)
        pack_panel<Width>(x.block(whole * Width, first), rows - whole * Width, slice,
                          panels + whole * panel() + first * Width);
    } else {
      for (Dim i = piece * kGroup; i < std::min(rows, (piece + 1) * kGroup); i += Width)
        pack_panel<Width>(x.block(i, 0), std::min<Dim>(Width, rows - i), depth, panels + i / Width * panel());
    }
  }

  void pack() const {
    for (Dim piece = 0; piece < pieces(); ++piece) pack(piece);
  }

 private:
  static constexpr Dim kGroup = 8 * Width, kSlice = 32;
  bool along_depth() const { return x.row_stride == 1; }
};

/// What a chain starts from.
enum class Start { zero, value, row };

template <class T, int Vectors>
using Tile = Lanes<T>[kTileRows][Vectors];

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
inline __attribute__((always_inline)) void multiply_step(View<P>& a, const P*& b, Tile<T, Vectors>& c) {
  Lanes<P> column[Vectors];
#pragma GCC unroll 4
  for (int j = 0; j < Vectors; ++j) column[j] = Lanes<P>::load(b + j * Lanes<P>::kCount);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
    const Lanes<P> row(a.data[i * a.row_stride]);
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) c[i][j] = fma(row, column[j], c[i][j]);
  }
  a.data += a.column_stride;
  b += kTileColumns<P>;
}

/// The inner loop: accumulators += kTileRows rows of A · panel of B. A is a packed panel, or lies in memory as it is.
template <class P, class T, int Vectors>
inline __attribute__((always_inline)) void multiply_panels(Dim depth, View<P> a, const P* b, Tile<T, Vectors>& c) {
  Dim k = 0;
  for (; k + kSteps <= depth; k += kSteps)
#pragma GCC unroll 8
    for (int u = 0; u < kSteps; ++u) multiply_step<P, T, Vectors>(a, b, c);
  for (; k < depth; ++k) multiply_step<P, T, Vectors>(a, b, c);
}

// Below, P is what panels are made of: T or, where the processor multiplies them, pairs of bf16.

/// One tile of C at `c` of whole vectors. `row` holds the start values of its columns where start is Start::row.
template <int Vectors, class P, class T>
void compute_tile(Dim depth, const P* a, const P* b, T* c, Dim c_stride, Start start, const T* row) {
  constexpr int kCount = Lanes<T>::kCount;
  Tile<T, Vectors> tile;
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j)
      tile[i][j] = start == Start::zero    ? Lanes<T>(T(0))
                   : start == Start::value ? Lanes<T>::load(c + i * c_stride + j * kCount)
                                           : Lanes<T>::load(row + j * kCount);
  multiply_panels<P, T, Vectors>(depth, View<P>{a, 1, kTileRows}, b, tile);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) tile[i][j].store(c + i * c_stride + j * kCount);
}

/// A tile that overhangs the edge of C goes through a whole one on the side.
template <class P, class T>
void compute_edge_tile(Dim depth, const P* a, const P* b, T* c, Dim c_stride, Dim rows, Dim columns, Start start,
                       const T* row) {
  alignas(64) T whole[kTileRows * kTileColumns<T>] = {};
  alignas(64) T whole_row[kTileColumns<T>] = {};
  if (start == Start::value)
    for (Dim i = 0; i < rows; ++i) std::copy_n(c + i * c_stride, columns, whole + i * kTileColumns<T>);
  if (start == Start::row) std::copy_n(row, columns, whole_row);
  for_vectors<T>(columns,
                 [&]<int Vectors>() { compute_tile<Vectors>(depth, a, b, whole, kTileColumns<T>, start, whole_row); });
  for (Dim i = 0; i < rows; ++i) std::copy_n(whole + i * kTileColumns<T>, columns, c + i * c_stride);
}

/// C [rows, columns] from packed panels: `a` holds rows/kTileRows panels a_panel apart, `b` likewise of columns. Panels
/// of A are the outer loop: one stays in the first-level cache while all of B, in the second, passes by.
template <class P, class T>
void multiply_packed(Dim rows, Dim columns, Dim depth, const P* a, Dim a_panel, const P* b, Dim b_panel, T* c,
                     Dim c_stride, Start start, const std::type_identity_t<T>* row) {
  for (Dim i = 0; i < rows; i += kTileRows, a += a_panel) {
    const P* panel = b;
    for (Dim j = 0; j < columns; j += kTileColumns<T>, panel += b_panel) {
      T* tile = c + i * c_stride + j;
      const T* start_row = start == Start::row ? row + j : nullptr;
      const Dim m = std::min<Dim>(kTileRows, rows - i), n = std::min<Dim>(kTileColumns<T>, columns - j);
      if (m == kTileRows && n % Lanes<T>::kCount == 0)
        for_vectors<T>(
            n, [&]<int Vectors>() { compute_tile<Vectors>(depth, a, panel, tile, c_stride, start, start_row); });
      else compute_edge_tile(depth, a, panel, tile, c_stride, m, n, start, start_row);
    }
  }
}

/// A tile of Cᵀ, `rows` ≤ kTileRows by `columns` ≤ kTileColumns, written to C turned: A lies in memory unpacked, with
/// neighbours along k, and is read just as often as it would be for packing. `start_of_rows` is what the chains of a
/// row of Cᵀ start from where start is Start::row.
template <class T>
void compute_turned_tile(Dim depth, const View<T>& a, const T* b, T* c, Dim c_stride, Dim rows, Dim columns,
                         Start start, const T* start_of_rows) {
  constexpr int kCount = Lanes<T>::kCount;
  alignas(64) T turned[kTileRows * kTileColumns<T>] = {};
  if (start == Start::value)
    for (Dim j = 0; j < columns; ++j)
      for (Dim i = 0; i < rows; ++i) turned[i * kTileColumns<T> + j] = c[j * c_stride + i];
  for_vectors<T>(columns, [&]<int Vectors>() {
    Tile<T, Vectors> tile;
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j)
        tile[i][j] = start == Start::row ? Lanes<T>(start_of_rows[std::min<Dim>(i, rows - 1)])
                                         : Lanes<T>::load(turned + i * kTileColumns<T> + j * kCount);
    multiply_panels<T, T, Vectors>(depth, a, b, tile);
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) tile[i][j].store(turned + i * kTileColumns<T> + j * kCount);
  });
  for (Dim j = 0; j < columns; ++j)
    for (Dim i = 0; i < rows; ++i) c[j * c_stride + i] = turned[i * kTileColumns<T> + j];
}

}  // namespace bertrand::cpu
