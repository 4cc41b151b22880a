// How the operands of a product are packed: A into panels of kTileRows rows, B into panels of kTileColumns columns,
// both with the depth as the slow index, so that the inner loop reads memory in order. Packing absorbs transposes, and
// widens f16: its panels and everything after them are of Compute<T>. Panels of bf16 are another matter
// (bf16_panels.h).
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
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

/// The operands of a product, each packed so that its lines (rows of A, columns of B) lie side by side.
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
template <Side side, class P>
inline constexpr int kPanelLines = side == Side::left ? kTileRows<P> : kTileColumns<P>;

/// Steps in the panel of a line that is `depth` long.
template <class P>
constexpr Dim steps_of(Dim depth) {
  return depth;
}

/// Elements that one packed panel takes; a store may reach one vector beyond its end.
template <Side side, class P>
constexpr Dim panel_size(Dim depth) {
  return round_up(steps_of<P>(depth) * kPanelLines<side, P> + Dim{64 / sizeof(P)}, 16);
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

/// to(j, i) = from(i, j) for rows × columns elements whose neighbours lie along j, in squares that fit the registers.
template <class T>
[[gnu::flatten]] void turn(const T* from, Dim from_stride, Dim rows, Dim columns, T* to, Dim to_stride) {
  using Packet = typename Lanes<T>::Packet;
  constexpr int kSize = Lanes<T>::kPacketSize;
  const Dim whole_rows = rows / kSize * kSize, whole_columns = columns / kSize * kSize;
  for (Dim j = 0; j < whole_columns; j += kSize)
    for (Dim i = 0; i < whole_rows; i += kSize) {
      Eigen::internal::PacketBlock<Packet, kSize> square;
      for (int r = 0; r < kSize; ++r) square.packet[r] = load_packet<Packet>(from + (i + r) * from_stride + j);
      Eigen::internal::ptranspose(square);
      for (int r = 0; r < kSize; ++r) Eigen::internal::pstoreu(to + (j + r) * to_stride + i, square.packet[r]);
    }
  for (Dim j = 0; j < columns; ++j)
    for (Dim i = j < whole_columns ? whole_rows : 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
}

/// An operand that is packed, in pieces that threads share. x has the lines of B, its columns, as rows.
template <Side side, class T>
struct Packing {
  View<T> x;
  Dim lines, depth;
  Compute<T>* panels;

  Dim panel() const { return panel_size<side, Compute<T>>(depth); }  ///< elements from one panel to the next
  Dim pieces() const { return along_depth() ? ceiling(depth, kSlice) : ceiling(lines, kGroup) * runs(); }

  /// A piece reads long runs of memory: whole k where neighbours are lines, else lines or long parts of them.
  void pack(Dim piece) const {
    if (along_depth()) {
      const Dim first = piece * kSlice, slice = std::min(kSlice, depth - first), whole = lines / kWidth;
      for (Dim k = first; k < first + slice; ++k)
        for (Dim p = 0; p < whole; ++p)
          widen<kWidth>(x.data + k * x.column_stride + p * kWidth, panels + p * panel() + k * kWidth);
      if (whole * kWidth < lines)
        pack_panel<kWidth>(x.block(whole * kWidth, first), lines - whole * kWidth, slice,
                           panels + whole * panel() + first * kWidth);
    } else {
      const Dim group = piece / runs() * kGroup, k = piece % runs() * kRun;
      for (Dim i = group; i < std::min(lines, group + kGroup); i += kWidth)
        pack_panel<kWidth>(x.block(i, k), std::min<Dim>(kWidth, lines - i), std::min(kRun, depth - k),
                           panels + i / kWidth * panel() + k * kWidth);
    }
  }

  void pack() const {
    for (Dim piece = 0; piece < pieces(); ++piece) pack(piece);
  }

 private:
  static constexpr int kWidth = kPanelLines<side, Compute<T>>;
  // A panel of few lines is packed in one go: its stores reach into the next k.
  static constexpr bool kWhole = side == Side::left;
  static constexpr Dim kGroup = kWhole ? 8 * kWidth : kWidth, kRun = kWhole ? std::numeric_limits<Dim>::max() : 256;
  static constexpr Dim kSlice = 32;
  Dim runs() const { return ceiling(depth, std::min(kRun, depth)); }
  bool along_depth() const { return x.row_stride == 1; }
};

}  // namespace bertrand::cpu
