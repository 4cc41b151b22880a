// How the operands of a product are packed. B: into panels of kTileColumns columns with the depth as the slow index, so
// that the inner loop reads memory in order. A: not at all if its rows are runs of memory in the type that is computed
// in, because the inner loop takes one number of a row at a time; else into rows, or, if neighbours in memory are
// lines, into panels of kTileRows rows with the depth as the slow index. Packing absorbs transposes, and widens f16:
// its panels and everything after them are of Compute<T>. Panels of bf16 are another matter (bf16_panels.h).
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tensor/cpu/lanes.h"
#include "tensor/shape.h"

namespace bertrand::cpu {

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

/// The operands of a product. Lines are rows of A and columns of B.
enum class Side { left, right };

// Below, P is what a panel is made of: T where it is computed in, float for f16, and for bf16 one of bf16_panels.h.

/// Rows and columns of C that are computed at once.
template <class P>
inline constexpr int kTileRows = 6;
#if defined(__AVX512F__)
inline constexpr int kTileVectors = 4;  // 6 × 4 accumulators + 4 of B + 1 of A of 32 registers
#else
inline constexpr int kTileVectors = 1;  // 6 × 2 accumulators + 2 of B + 1 of A of 16 registers
#endif
template <class P>
inline constexpr int kTileColumns = kTileVectors * 64 / int{sizeof(P)};
/// From one step of a panel of B to the next, if C has so many more columns: the last panel is no wider than the
/// vectors that compute them.
template <class P>
constexpr int panel_width(Dim columns) {
  constexpr Dim kVector = Lanes<P>::kCount;
  return static_cast<int>(columns <= kVector / 2 ? kVector / 2
                                                 : std::min<Dim>(round_up(columns, kVector), kTileColumns<P>));
}
template <Side side, class P>
inline constexpr int kPanelLines = side == Side::left ? kTileRows<P> : kTileColumns<P>;

/// Steps in the panel of a line that is `depth` long.
template <class P>
constexpr Dim steps_of(Dim depth) {
  return depth;
}

/// Elements that one packed panel takes.
template <Side side, class P>
constexpr Dim panel_size(Dim depth) {
  return round_up(steps_of<P>(depth) * kPanelLines<side, P>, 16);
}

/// Copies neighbours, widening the half types.
template <int Count, class T>
void widen(const T* from, Compute<T>* to) {
  if constexpr (std::is_same_v<T, Compute<T>>) std::memcpy(to, from, Count * sizeof(T));
  else
    for (int i = 0; i < Count; ++i) to[i] = Compute<T>(from[i]);
}

/// One panel, `lines` ≤ `width` rows of x by `depth` columns, whose neighbours lie along k: panel[k · width + i] = x(i,
/// k), zeros beyond `lines`.
template <class T, class C = Compute<T>>
[[gnu::flatten]] void pack_panel(const View<T>& x, Dim lines, Dim width, Dim depth, C* panel) {
  using Packet = typename Lanes<C>::Packet;
  constexpr int kSize = Lanes<C>::kPacketSize;
  // Squares of kSize × kSize are turned in registers.
  const Dim whole = lines / kSize * kSize, squares = depth / kSize * kSize;
  for (Dim first = 0; first < whole; first += kSize)
    for (Dim k = 0; k < squares; k += kSize) {
      Eigen::internal::PacketBlock<Packet, kSize> square;
      for (int i = 0; i < kSize; ++i) square.packet[i] = load_packet<Packet>(x.data + (first + i) * x.row_stride + k);
      Eigen::internal::ptranspose(square);
      for (int j = 0; j < kSize; ++j) Eigen::internal::pstoreu(panel + (k + j) * width + first, square.packet[j]);
    }
  for (Dim k = 0; k < depth; ++k) {
    for (Dim i = k < squares ? whole : 0; i < lines; ++i) panel[k * width + i] = C(x.data[i * x.row_stride + k]);
    for (Dim i = lines; i < width; ++i) panel[k * width + i] = C(0);
  }
}

/// to(j, i) = from(i, j) for rows × columns elements whose neighbours lie along j, in squares that fit the registers.
/// They are only moved: whatever has the size of a float or a double keeps its bits.
template <class T>
[[gnu::flatten]] void turn(const T* from, Dim from_stride, Dim rows, Dim columns, T* to, Dim to_stride) {
  using Number = Lanes<std::conditional_t<sizeof(T) == sizeof(float), float, double>>;
  using Packet = typename Number::Packet;
  constexpr int kSize = Number::kPacketSize;
  const Dim whole_rows = rows / kSize * kSize, whole_columns = columns / kSize * kSize;
  for (Dim j = 0; j < whole_columns; j += kSize)
    for (Dim i = 0; i < whole_rows; i += kSize) {
      Eigen::internal::PacketBlock<Packet, kSize> square;
      for (int r = 0; r < kSize; ++r) std::memcpy(&square.packet[r], from + (i + r) * from_stride + j, sizeof(Packet));
      Eigen::internal::ptranspose(square);
      for (int r = 0; r < kSize; ++r) std::memcpy(to + (j + r) * to_stride + i, &square.packet[r], sizeof(Packet));
    }
  for (Dim j = 0; j < columns; ++j)
    for (Dim i = j < whole_columns ? whole_rows : 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
}

/// k of lines that are neighbours in memory which are packed as one piece of work.
inline constexpr Dim kSlice = 32;
/// Slice `index` of the depth of all lines, into panels that lie `panel` elements apart. The last one, if lines do not
/// fill it, is `last_width` wide, with zeros beyond `lines`.
template <int Width, class T>
void pack_slice(const View<T>& x, Dim lines, Dim depth, Dim index, Compute<T>* to, Dim panel, Dim last_width) {
  const Dim first = index * kSlice, whole = lines / Width, rest = lines % Width;
  for (Dim k = first; k < std::min(depth, first + kSlice); ++k) {
    const T* const from = x.data + k * x.column_stride;
    for (Dim p = 0; p < whole; ++p) widen<Width>(from + p * Width, to + p * panel + k * Width);
    Compute<T>* const last = to + whole * panel + k * last_width;
    for (Dim i = 0; rest > 0 && i < last_width; ++i) last[i] = i < rest ? Compute<T>(from[whole * Width + i]) : 0;
  }
}

/// How the inner loop reads A: in panels of kTileRows rows.
template <class P>
struct LeftPanels {
  View<P> first;
  Dim next;      ///< elements from one panel to the next
  View<P> edge;  ///< the last panel, if the rows do not fill it

  /// `rows` of the rows from row i on, which begins a panel, are left.
  View<P> panel(Dim i, Dim rows) const {
    if (rows < kTileRows<P>) return edge;
    return {first.data + i / kTileRows<P> * next, first.row_stride, first.column_stride};
  }
  LeftPanels from(Dim i) const { return {panel(i, kTileRows<P>), next, edge}; }
};

/// A, or the part of it that `memory` holds packed, in pieces that threads share.
template <class T>
struct LeftPacking {
  using P = Compute<T>;
  View<T> x;
  Dim lines, depth;
  P* memory;

  /// Nothing is packed but an edge of fewer rows than a panel: others would be read beyond the end of x.
  static bool in_place(const View<T>& x, Dim /*depth*/) { return std::is_same_v<T, P> && x.column_stride == 1; }
  /// Elements of memory that parts of x take, which is `depth` deep: so many lines, at most so much of the depth.
  static Dim size(const View<T>& x, Dim depth, Dim lines, Dim most) {
    return (in_place(x, depth) ? 1 : ceiling(lines, kWidth)) * panel_size<Side::left, P>(most);
  }

  Dim pieces() const {
    return in_place(x, depth) ? lines % kWidth != 0
                              : ceiling(along_depth() ? depth : lines, along_depth() ? kSlice : kGroup);
  }
  void pack(Dim piece) const {
    if (in_place(x, depth)) pack_rows(lines / kWidth * kWidth, lines, memory);
    else if (along_depth()) pack_slice<kWidth>(x, lines, depth, piece, memory, panel(), kWidth);
    else
      for (Dim i = piece * kGroup; i < std::min(lines, (piece + 1) * kGroup); i += kWidth)
        pack_rows(i, std::min(i + kWidth, lines), memory + i / kWidth * panel());
  }
  LeftPanels<P> panels() const {
    const View<P> packed = along_depth() ? View<P>{memory, 1, kWidth} : View<P>{memory, depth, 1};
    if constexpr (std::is_same_v<T, P>)
      if (in_place(x, depth)) return {x, kWidth * x.row_stride, packed};
    return {packed, panel(), {memory + lines / kWidth * panel(), packed.row_stride, packed.column_stride}};
  }

 private:
  static constexpr int kWidth = kTileRows<P>;
  static constexpr Dim kGroup = 8 * kWidth;
  Dim panel() const { return panel_size<Side::left, P>(depth); }
  bool along_depth() const { return x.column_stride != 1; }

  /// One panel of rows, zeros where there are none.
  void pack_rows(Dim begin, Dim end, P* to) const {
    for (Dim i = begin; i < end; ++i, to += depth)
      for_lanes<P>(depth, [&](Dim k, Dim n) { Lanes<P>::load(x.data + i * x.row_stride + k, n).store(to + k, n); });
    std::fill_n(to, (begin + kWidth - end) * depth, P(0));
  }
};

/// B, whose columns are the rows of x, packed in pieces that threads share.
template <class T>
struct RightPacking {
  View<T> x;
  Dim lines, depth;
  Compute<T>* memory;
  Dim columns = lines;  ///< of the product, which may go on to the end of a vector

  Dim pieces() const { return along_depth() ? ceiling(depth, kSlice) : ceiling(lines, kWidth) * runs(); }

  /// A piece reads long runs of memory: whole k where neighbours are lines, else long parts of lines.
  void pack(Dim piece) const {
    if (along_depth()) {
      pack_slice<kWidth>(x, lines, depth, piece, memory, panel(),
                         panel_width<Compute<T>>(columns - lines / kWidth * kWidth));
    } else {
      const Dim line = piece / runs() * kWidth, k = piece % runs() * kRun;
      const Dim width = panel_width<Compute<T>>(columns - line);
      pack_panel(x.block(line, k), std::min<Dim>(kWidth, lines - line), width, std::min(kRun, depth - k),
                 memory + line / kWidth * panel() + k * width);
    }
  }
  void pack() const {
    for (Dim piece = 0; piece < pieces(); ++piece) pack(piece);
  }

 private:
  static constexpr int kWidth = kTileColumns<Compute<T>>;
  static constexpr Dim kRun = 256;
  Dim panel() const { return panel_size<Side::right, Compute<T>>(depth); }
  Dim runs() const { return ceiling(depth, kRun); }
  bool along_depth() const { return x.row_stride == 1; }
};

}  // namespace bertrand::cpu
