// What a product of bf16 is, and what it is packed into. Of each element c of C, blocks of 32 k are added in turn,
//
//   even ← Σ a(k) · b(k) over the even k of the block,  odd ← Σ over its odd k,  c ← c + (even + odd)
//
// where both sums are chains of fused multiply-adds from zero in ascending k, every step is rounded to the nearest f32,
// numbers below 2^-126 are 0, given or made, and the depth is filled up with zeros. This is what the tile unit of AMX
// does in one instruction (tiles.h). Others do the same in other instructions, so that a product of bf16 has the same
// bits on every processor. Each reads words of two bf16, one word of a line in each step:
//
//   WideStep    the word is one k as a float, for fused multiply-adds: the even k of a block, then its odd ones
//   PairStep    two k that are neighbours of the same chain, for vdpbf16ps, which adds the product of the upper first
//   TilePair    k and k + 1, for the tile unit
//
// A is packed into rows of words; the words of TilePair are how bf16 lies in memory, so it is read there. B is packed
// into panels (panels.h). Those for tiles are two columns of tiles beside each other, in the order in which they are
// loaded.
#pragma once
#include <bit>
#include <utility>

#include "tensor/cpu/panels.h"
#include "tensor/cpu/tiles.h"

namespace bertrand::cpu {

inline constexpr int kBf16Block = tiles::kDepth;

/// Which k of a block a step's word holds; -1: the half is zero.
struct StepOrder {
  int low, high;
};

struct WideStep {
  std::uint32_t word;
  static constexpr int kBlockSteps = kBf16Block;
  static constexpr StepOrder order(int step) { return {-1, step < 16 ? 2 * step : 2 * (step - 16) + 1}; }
};
struct PairStep {
  std::uint32_t word;
  static constexpr int kBlockSteps = kBf16Block / 2;
  static constexpr StepOrder order(int step) {
    const int first = step < 8 ? 4 * step : 4 * (step - 8) + 1;
    return {first + 2, first};
  }
};
struct TilePair {
  std::uint32_t word;
  static constexpr int kBlockSteps = kBf16Block / 2;
  static constexpr StepOrder order(int step) { return {2 * step, 2 * step + 1}; }
};

#if defined(BERTRAND_TILES) || defined(BERTRAND_EMULATED_TILES)
using Bf16Panel = TilePair;
#elif defined(__AVX512BF16__) || defined(BERTRAND_EMULATED_PAIRS)
using Bf16Panel = PairStep;
#else
using Bf16Panel = WideStep;
#endif

/// A vector of words of as many lines in one step.
template <std::size_t kBytes>
struct Lanes<WideStep, kBytes> : Lanes<float, kBytes> {
  using Floats = Lanes<float, kBytes>;
  Lanes(const Floats& x) : Floats(x) {}  // NOLINT: floats are what the words are
  Lanes() = default;
  Lanes(WideStep step) : Floats(std::bit_cast<float>(step.word)) {}  // NOLINT: as all Lanes
  static Lanes load(const WideStep* from) { return Floats::load(reinterpret_cast<const float*>(from)); }
};
template <std::size_t kBytes>
Lanes<float, kBytes> fma(const Lanes<WideStep, kBytes>& a, const Lanes<WideStep, kBytes>& b,
                         const Lanes<float, kBytes>& c) {
  return fma<float, kBytes>(a, b, c);
}

#if defined(__AVX512BF16__)
template <std::size_t kBytes>
struct Lanes<PairStep, kBytes> {
  using Words = std::conditional_t<kBytes == 64, __m512bh, __m256bh>;
  static constexpr int kCount = static_cast<int>(kBytes / sizeof(PairStep));
  Words words;

  Lanes() = default;
  Lanes(PairStep step) {  // NOLINT: as all Lanes
    const auto word = static_cast<int>(step.word);
    if constexpr (kBytes == 64) words = std::bit_cast<Words>(_mm512_set1_epi32(word));
    else words = std::bit_cast<Words>(_mm256_set1_epi32(word));
  }
  static Lanes load(const PairStep* from) {
    Lanes x;
    std::memcpy(&x.words, from, sizeof x.words);
    return x;
  }
};
/// The upper products are added to c, then the lower ones.
template <std::size_t kBytes>
Lanes<float, kBytes> fma(const Lanes<PairStep, kBytes>& a, const Lanes<PairStep, kBytes>& b,
                         const Lanes<float, kBytes>& c) {
  Lanes<float, kBytes> y;
  if constexpr (kBytes == 64) y.packets[0] = _mm512_dpbf16_ps(c.packets[0], a.words, b.words);
  else y.packets[0] = _mm256_dpbf16_ps(c.packets[0], a.words, b.words);
  return y;
}
#else
/// The same without the instruction, for tests.
template <std::size_t kBytes>
struct Lanes<PairStep, kBytes> {
  using Floats = Lanes<float, kBytes>;
  static constexpr int kCount = Floats::kCount;
  std::uint32_t words[kCount];

  Lanes() = default;
  Lanes(PairStep step) { std::fill_n(words, kCount, step.word); }  // NOLINT: as all Lanes
  static Lanes load(const PairStep* from) {
    Lanes x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  Floats upper() const {
    alignas(64) float x[kCount];
    for (int i = 0; i < kCount; ++i) x[i] = std::bit_cast<float>(words[i] & 0xffff0000u);
    return Floats::load(x);
  }
  Floats lower() const {
    alignas(64) float x[kCount];
    for (int i = 0; i < kCount; ++i) x[i] = std::bit_cast<float>(words[i] << 16);
    return Floats::load(x);
  }
};
template <std::size_t kBytes>
Lanes<float, kBytes> fma(const Lanes<PairStep, kBytes>& a, const Lanes<PairStep, kBytes>& b,
                         const Lanes<float, kBytes>& c) {
  return fma(a.lower(), b.lower(), fma(a.upper(), b.upper(), c));
}
#endif

/// Half as many columns as others: then both chains of each element of C stay in registers.
template <>
inline constexpr int kTileColumns<PairStep> = std::min(kTileVectors, 2) * 16;
/// Two tiles by two of C are computed at once: of eight tiles, four hold C, two A, two B.
template <>
inline constexpr int kTileRows<TilePair> = 2 * tiles::kRows;
template <>
inline constexpr int kTileColumns<TilePair> = 2 * tiles::kRows;

template <>
constexpr Dim steps_of<Bf16Panel>(Dim depth) {
  return ceiling(depth, kBf16Block) * Bf16Panel::kBlockSteps;
}

/// What panels of an operand of T are made of.
template <class T>
using PanelOf = std::conditional_t<std::is_same_v<T, BFloat16>, Bf16Panel, Compute<T>>;
/// What the factors of a product are rounded to that are computed on the way to it: bf16 where the product is of bf16.
template <class T>
using Factor = std::conditional_t<std::is_same_v<T, BFloat16>, BFloat16, Compute<T>>;

/// The halves of a block in the order in which P has them.
template <class P, std::size_t... I>
[[gnu::always_inline]] inline void shuffle(const BFloat16* line, std::uint32_t* words, std::index_sequence<I...>) {
  typedef std::uint16_t Halves __attribute__((vector_size(2 * kBf16Block)));
  Halves x;
  std::memcpy(&x, line, sizeof x);
  x = __builtin_shufflevector(x, x, (I % 2 == 0 ? P::order(I / 2).low : P::order(I / 2).high)...);
  std::memcpy(words, &x, sizeof x);
}

/// The words of one line of a block.
template <class P>
void arrange(const BFloat16* line, std::uint32_t* words) {
  if constexpr (std::is_same_v<P, TilePair>) {
    std::memcpy(words, line, kBf16Block * sizeof(BFloat16));
  } else if constexpr (std::is_same_v<P, WideStep>) {
    std::uint32_t pairs[kBf16Block / 2];
    std::memcpy(pairs, line, sizeof pairs);
    for (int i = 0; i < kBf16Block / 2; ++i) words[i] = pairs[i] << 16;
    for (int i = 0; i < kBf16Block / 2; ++i) words[kBf16Block / 2 + i] = pairs[i] & 0xffff0000u;
  } else {
    shuffle<P>(line, words, std::make_index_sequence<kBf16Block>());
  }
}

/// Words of `Count` lines in one step, of lines that are neighbours in memory: `block` points to the first k.
template <class P, int Count>
void interleave(const BFloat16* block, Dim stride, int step, std::uint32_t* words) {
  const StepOrder order = P::order(step);
  const BFloat16* const high = block + order.high * stride;
  if (order.low < 0)
    for (int i = 0; i < Count; ++i) words[i] = std::uint32_t{high[i].bits} << 16;
  else
    for (int i = 0; i < Count; ++i) words[i] = block[order.low * stride + i].bits | std::uint32_t{high[i].bits} << 16;
}

/// Calls pack(view) for a block of `Width` lines from the first of x on: x itself if the block is whole, else a copy of
/// what there is of it, and zeros. Its neighbours are neighbours in x.
template <int Width, class Pack>
[[gnu::always_inline]] inline void with_whole_block(const View<BFloat16>& x, Dim lines, Dim depth, const Pack& pack) {
  if (lines >= Width && depth >= kBf16Block) return pack(x);  // for speed alone: its copy is packed alike
  BFloat16 filled[Width * kBf16Block];
  const View<BFloat16> whole =
      x.column_stride == 1 ? View<BFloat16>{filled, kBf16Block, 1} : View<BFloat16>{filled, 1, Width};
  for (Dim i = 0; i < std::min<Dim>(lines, Width); ++i)
    for (Dim k = 0; k < std::min<Dim>(depth, kBf16Block); ++k)
      filled[i * whole.row_stride + k * whole.column_stride] = x.data[i * x.row_stride + k * x.column_stride];
  pack(whole);
}

/// A of bf16, or the rows of words that it is packed into, zeros beyond lines and depth.
template <>
struct LeftPacking<BFloat16> {
  using P = Bf16Panel;
  View<BFloat16> x;
  Dim lines, depth;
  P* memory;

  static bool in_place(const View<BFloat16>& x, Dim depth) {
    return std::is_same_v<P, TilePair> && x.column_stride == 1 && x.row_stride % 2 == 0 && depth % kBf16Block == 0;
  }
  static Dim size(const View<BFloat16>& x, Dim depth, Dim lines, Dim most) {
    return (in_place(x, depth) ? 1 : ceiling(lines, kWidth)) * panel_size<Side::left, P>(most);
  }

  Dim pieces() const {
    if (in_place(x, depth)) return lines % kWidth != 0;
    return along_depth() ? ceiling(depth, kBf16Block) : ceiling(lines, kGroup);
  }
  void pack(Dim piece) const {
    const Dim end = round_up(lines, kWidth);
    if (in_place(x, depth)) {
      pack_rows<1>(lines / kWidth * kWidth, end, 0, depth, memory);
    } else if (along_depth()) {
      pack_rows<kSquare>(0, end, piece * kBf16Block, std::min(depth, (piece + 1) * kBf16Block), memory);
    } else {
      const Dim first = piece * kGroup;
      pack_rows<1>(first, std::min(end, first + kGroup), 0, depth, memory + first * stride());
    }
  }
  LeftPanels<P> panels() const {
    const View<P> packed{memory, stride(), 1};
    if (in_place(x, depth)) {
      const View<P> words{reinterpret_cast<const P*>(x.data), x.row_stride / 2, 1};
      return {words, kWidth * words.row_stride, packed};
    }
    return {packed, kWidth * stride(), packed.block(lines / kWidth * kWidth, 0)};
  }

 private:
  static constexpr Dim kWidth = kTileRows<P>, kGroup = 8 * kWidth;
  static constexpr int kSteps = P::kBlockSteps, kSquare = 16;  // lines that are neighbours in memory
  Dim stride() const { return steps_of<P>(depth); }
  bool along_depth() const { return x.column_stride != 1; }

  /// Blocks of the rows [begin, end), so many rows at a time, to the first of them at `to`.
  template <int Rows>
  void pack_rows(Dim begin, Dim end, Dim k_begin, Dim k_end, P* to) const {
    for (Dim i = begin; i < end; i += Rows)
      for (Dim k = k_begin; k < k_end; k += kBf16Block) {
        auto* const words = reinterpret_cast<std::uint32_t*>(to + (i - begin) * stride() + k / kBf16Block * kSteps);
        with_whole_block<Rows>(x.block(i, k), lines - i, depth - k, [&](const View<BFloat16>& from) {
          if constexpr (Rows == 1) {
            arrange<P>(from.data, words);
          } else {
            std::uint32_t steps[kSteps][Rows];
            for (int step = 0; step < kSteps; ++step)
              interleave<P, Rows>(from.data, from.column_stride, step, steps[step]);
            turn(steps[0], Rows, kSteps, std::min<Dim>(Rows, end - i), words, stride());
          }
        });
      }
  }
};

/// B of bf16, whose columns are the rows of x, packed in pieces that threads share, zeros beyond lines and depth.
template <>
struct RightPacking<BFloat16> {
  using P = Bf16Panel;
  View<BFloat16> x;
  Dim lines, depth;
  P* memory;
  Dim columns = lines;  ///< of the product, which may go on to the end of a vector

  Dim pieces() const { return along_depth() ? ceiling(depth, kBf16Block) : ceiling(lines, kPanel); }
  void pack(Dim piece) const {
    const Dim blocks = ceiling(depth, kBf16Block);
    if (along_depth())
      for (Dim line = 0; line < columns; line += kPanel) pack_block(line, piece);
    else
      for (Dim block = 0; block < blocks; ++block) pack_block(piece * kPanel, block);
  }
  void pack() const {
    for (Dim piece = 0; piece < pieces(); ++piece) pack(piece);
  }

 private:
  static constexpr int kPanel = kTileColumns<P>, kSteps = P::kBlockSteps;
  bool along_depth() const { return x.row_stride == 1; }

  /// One block of the panel that begins with `line`.
  void pack_block(Dim line, Dim block) const {
    P* const panel = memory + line / kPanel * panel_size<Side::right, P>(depth);
    const auto pack = [&]<int Lines>(Dim first, P* to, Dim width) {
      pack_lines<Lines>(line + first, block * kBf16Block, reinterpret_cast<std::uint32_t*>(to), width);
    };
    if constexpr (std::is_same_v<P, TilePair>) {
      constexpr int kRows = tiles::kRows;
      for (Dim i = 0; i < kPanel; i += kRows)
        pack.template operator()<kRows>(i, panel + i * steps_of<P>(depth) + block * kSteps * kRows, kRows);
    } else {
      constexpr int kVector = Lanes<P>::kCount;
      const Dim width = panel_width<P>(columns - line);
      P* const to = panel + block * kSteps * width;
      if (width < kVector) return pack.template operator()<kVector / 2>(0, to, width);
      for (Dim i = 0; i < width; i += kVector) pack.template operator()<kVector>(i, to + i, width);
    }
  }

  /// So many lines, whose words of one step lie beside each other, `width` words from one step to the next.
  template <int Lines>
  void pack_lines(Dim line, Dim k, std::uint32_t* words, Dim width) const {
    with_whole_block<Lines>(x.block(line, k), lines - line, depth - k, [&](const View<BFloat16>& from) {
      if (from.column_stride == 1) {
        std::uint32_t rows[Lines][kSteps];
        for (int i = 0; i < Lines; ++i) arrange<P>(from.data + i * from.row_stride, rows[i]);
        turn(rows[0], kSteps, Lines, kSteps, words, width);
      } else {
        for (int step = 0; step < kSteps; ++step)
          interleave<P, Lines>(from.data, from.column_stride, step, words + step * width);
      }
    });
  }
};

/// The mode that a thread must be in, while this lives, to multiply panels of P.
template <class P>
struct Arithmetic {};
template <>
struct Arithmetic<WideStep> : NoSubnormals {};
template <>
struct Arithmetic<PairStep> : NoSubnormals {};
template <>
struct Arithmetic<TilePair> : tiles::Unit {};

}  // namespace bertrand::cpu
