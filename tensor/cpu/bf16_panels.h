// What a product of bf16 is, and what it is packed into. Of each element c of C, blocks of 32 k are added in turn,
//
//   even ← Σ a(k) · b(k) over the even k of the block,  odd ← Σ over its odd k,  c ← c + (even + odd)
//
// where both sums are chains of fused multiply-adds from zero in ascending k, every step is rounded to the nearest f32,
// numbers below 2^-126 are 0, given or made, and the depth is filled up with zeros. This is what the tile unit of AMX
// does in one instruction (tiles.h). Others do the same in other instructions, so that a product of bf16 has the same
// bits on every processor. Each has panels of its own, made of words of two bf16, one word of a line in each step:
//
//   WideStep    the word is one k as a float, for fused multiply-adds: the even k of a block, then its odd ones
//   PairStep    two k that are neighbours of the same chain, for vdpbf16ps, which adds the product of the upper first
//   TilePair    k and k + 1, for the tile unit
#pragma once
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

/// turned[step · Width + i] = lines[i][step]: Width lines of `Steps` words.
template <int Width, int Steps>
[[gnu::flatten]] void turn(const std::uint32_t (&lines)[Width][Steps], std::uint32_t* turned) {
  using Packet = Lanes<float>::Packet;  // only moved: a float that is loaded and stored keeps its bits
  constexpr int kSize = Lanes<float>::kPacketSize;
  if constexpr (Width % kSize == 0 && Steps % kSize == 0) {
    for (int step = 0; step < Steps; step += kSize)
      for (int line = 0; line < Width; line += kSize) {
        Eigen::internal::PacketBlock<Packet, kSize> square;
        for (int i = 0; i < kSize; ++i) std::memcpy(&square.packet[i], &lines[line + i][step], sizeof(Packet));
        Eigen::internal::ptranspose(square);
        for (int j = 0; j < kSize; ++j)
          std::memcpy(turned + (step + j) * Width + line, &square.packet[j], sizeof(Packet));
      }
  } else {
    for (int step = 0; step < Steps; ++step)
      for (int i = 0; i < Width; ++i) turned[step * Width + i] = lines[i][step];
  }
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
    for (int step = 0; step < P::kBlockSteps; ++step)
      words[step] = line[P::order(step).low].bits | std::uint32_t{line[P::order(step).high].bits} << 16;
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

/// An operand of bf16 that is packed (panels.h), zeros beyond lines and depth. A panel for tiles is two columns of
/// tiles beside each other, in the order in which they are loaded: of A a tile's rows are lines, of B they are steps.
template <Side side>
struct Packing<side, BFloat16> {
  using P = Bf16Panel;
  View<BFloat16> x;
  Dim lines, depth;
  P* panels;

  Dim pieces() const { return along_depth() ? ceiling(depth, kBf16Block) : ceiling(lines, kGroup); }
  void pack(Dim piece) const {
    const Dim end = round_up(lines, kPanel), blocks = ceiling(depth, kBf16Block);
    if (along_depth())
      for (Dim line = 0; line < end; line += kWidth) pack_block(line, piece);
    else
      for (Dim line = piece * kGroup; line < std::min(end, (piece + 1) * kGroup); line += kWidth)
        for (Dim block = 0; block < blocks; ++block) pack_block(line, block);
  }
  void pack() const {
    for (Dim piece = 0; piece < pieces(); ++piece) pack(piece);
  }

 private:
  static constexpr bool kTiles = std::is_same_v<P, TilePair>, kRowsAreLines = kTiles && side == Side::left;
  static constexpr int kPanel = kPanelLines<side, P>, kWidth = kTiles ? tiles::kRows : kPanel, kSteps = P::kBlockSteps;
  static constexpr Dim kGroup = 8 * kPanel;
  bool along_depth() const { return x.row_stride == 1; }

  void pack_block(Dim line, Dim block) const {
    const Dim first = block * kBf16Block;
    const Dim width = std::clamp<Dim>(lines - line, 0, kWidth), slice = std::min<Dim>(kBf16Block, depth - first);
    P* const panel = panels + line / kPanel * panel_size<side, P>(depth) + line % kPanel * steps_of<P>(depth);
    auto* const words = reinterpret_cast<std::uint32_t*>(panel + block * kSteps * kWidth);
    if (width == kWidth && slice == kBf16Block) return pack_whole(x.block(line, first), words);
    BFloat16 square[kWidth][kBf16Block] = {};
    for (Dim i = 0; i < width; ++i)
      for (Dim k = 0; k < slice; ++k) square[i][k] = x.data[(line + i) * x.row_stride + (first + k) * x.column_stride];
    pack_whole({square[0], kBf16Block, 1}, words);
  }

  static void pack_whole(const View<BFloat16>& from, std::uint32_t* words) {
    if (from.column_stride == 1) {
      if constexpr (kRowsAreLines) {
        for (int i = 0; i < kWidth; ++i) arrange<P>(from.data + i * from.row_stride, words + i * kSteps);
      } else {
        std::uint32_t arranged[kWidth][kSteps];
        for (int i = 0; i < kWidth; ++i) arrange<P>(from.data + i * from.row_stride, arranged[i]);
        turn(arranged, words);
      }
    } else if constexpr (kRowsAreLines) {
      std::uint32_t steps[kSteps][kWidth];
      for (int step = 0; step < kSteps; ++step) interleave<P, kWidth>(from.data, from.column_stride, step, steps[step]);
      turn(steps, words);
    } else {
      for (int step = 0; step < kSteps; ++step)
        interleave<P, kWidth>(from.data, from.column_stride, step, words + step * kWidth);
    }
  }
};

/// A vector of words of as many lines in one step.
template <>
struct Lanes<WideStep> : Lanes<float> {
  Lanes(const Lanes<float>& x) : Lanes<float>(x) {}  // NOLINT: floats are what the words are
  Lanes() = default;
  Lanes(WideStep step) : Lanes<float>(same_bits<float>(step.word)) {}  // NOLINT: as all Lanes
  static Lanes load(const WideStep* from) { return Lanes<float>::load(reinterpret_cast<const float*>(from)); }
};
inline Lanes<float> fma(const Lanes<WideStep>& a, const Lanes<WideStep>& b, const Lanes<float>& c) {
  return fma<float>(a, b, c);
}

#if defined(__AVX512BF16__)
template <>
struct Lanes<PairStep> {
  static constexpr int kCount = 16;
  __m512bh words;

  Lanes() = default;
  Lanes(PairStep step) : words(same_bits<__m512bh>(_mm512_set1_epi32(static_cast<int>(step.word)))) {}  // NOLINT
  static Lanes load(const PairStep* from) {
    Lanes x;
    x.words = same_bits<__m512bh>(_mm512_loadu_si512(from));
    return x;
  }
};
/// The upper products are added to c, then the lower ones.
inline Lanes<float> fma(const Lanes<PairStep>& a, const Lanes<PairStep>& b, const Lanes<float>& c) {
  Lanes<float> y;
  y.packets[0] = _mm512_dpbf16_ps(c.packets[0], a.words, b.words);
  return y;
}
#else
/// The same without the instruction, for tests.
template <>
struct Lanes<PairStep> {
  static constexpr int kCount = 16;
  std::uint32_t words[kCount];

  Lanes() = default;
  Lanes(PairStep step) { std::fill_n(words, kCount, step.word); }  // NOLINT: as all Lanes
  static Lanes load(const PairStep* from) {
    Lanes x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  Lanes<float> upper() const {
    alignas(64) float x[kCount];
    for (int i = 0; i < kCount; ++i) x[i] = same_bits<float>(words[i] & 0xffff0000u);
    return Lanes<float>::load(x);
  }
  Lanes<float> lower() const {
    alignas(64) float x[kCount];
    for (int i = 0; i < kCount; ++i) x[i] = same_bits<float>(words[i] << 16);
    return Lanes<float>::load(x);
  }
};
inline Lanes<float> fma(const Lanes<PairStep>& a, const Lanes<PairStep>& b, const Lanes<float>& c) {
  return fma(a.lower(), b.lower(), fma(a.upper(), b.upper(), c));
}
#endif

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
