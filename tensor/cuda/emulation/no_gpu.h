// What tensor/cuda/gpu.h gives by a GPU's instructions, without one.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/cuda/emulation/shared.h"
#include "tensor/dtype.h"

namespace bertrand::cuda {

inline float to_float(BFloat16 x) { return static_cast<float>(x); }
inline float to_float(Float16 x) { return static_cast<float>(x); }
inline BFloat16 to_bfloat16(float x) { return BFloat16(x); }
inline Float16 to_float16(float x) { return Float16(x); }
template <class T>
std::uint32_t make_pair(float first, float second) {
  return T(first).bits | static_cast<std::uint32_t>(T(second).bits) << 16;
}

inline float quick_exp2(float x) { return std::exp2(x); }
inline float quick_reciprocal(float x) { return 1 / x; }
template <class R>
R inverse_root(R x) {
  return 1 / std::sqrt(x);
}

/// What is read there before the thread has waited is 0xdeadbeef; with no barrier between, it is refused.
inline void start_copy(const SharedSpan<std::uint32_t>& span, std::int64_t at, const void* from, bool there) {
  if (at % 4 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
    emulation::stop(fmt::format("copies 16 bytes to element {} on from {}", at, from));
  for (int i = 0; i < 4; ++i) span[at + i] = 0xdeadbeef;
  emulation::start_copy([=] {
    std::uint32_t four[4] = {};
    if (there) std::memcpy(four, from, sizeof four);
    for (int i = 0; i < 4; ++i) span[at + i] = four[i];
  });
}
inline void end_copies() { emulation::end_copies(); }
template <int kLater>
void wait_for_copies() {
  emulation::wait_for_copies(kLater);
}

template <class To>
To four_of(const SharedSpan<std::uint32_t>& span, std::int64_t at) {
  if (at % 4 != 0) emulation::stop(fmt::format("reads 16 bytes from element {} on", at));
  To four;
  for (int i = 0; i < 4; ++i) four.values[i] = span[at + i];
  return four;
}

template <bool kTransposed>
void load_blocks(std::uint32_t (&out)[4], const SharedSpan<std::uint32_t>& span, std::int64_t row,
                 const emulation::Where& where = emulation::Where::current()) {
  if (row % 4 != 0) emulation::stop(fmt::format("loads a row of a block from element {} on", row));
  const emulation::Exchange& rows = emulation::exchange(0xffffffffu, &row, sizeof row, where);
  const unsigned g = emulation::lane() / 4, t = emulation::lane() % 4;
  for (unsigned block = 0; block < 4; ++block) {
    const auto pair = [&](unsigned of_row, unsigned at) -> std::uint32_t {
      return span[rows.of<std::int64_t>(8 * block + of_row) + at];
    };
    const auto element = [&](unsigned of_row, unsigned column) {
      return pair(of_row, column / 2) >> (column % 2 * 16) & 0xffffu;
    };
    out[block] = kTransposed ? element(2 * t, g) | element(2 * t + 1, g) << 16 : pair(g, t);
  }
}

/// Every lane shows the others what it holds of A and B, and looks up the rows and columns of its own four results.
template <class T>
void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                 const emulation::Where& where = emulation::Where::current()) {
  struct Held {
    std::uint32_t a[4], b[2];
  } mine;
  std::memcpy(mine.a, a, sizeof a);
  std::memcpy(mine.b, b, sizeof b);
  const emulation::Exchange& all = emulation::exchange(0xffffffffu, &mine, sizeof mine, where);
  const auto element = [](std::uint32_t pair, unsigned half) {
    return to_float(std::bit_cast<T>(static_cast<std::uint16_t>(pair >> 16 * half)));
  };
  const unsigned g = emulation::lane() / 4, t = emulation::lane() % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
    for (unsigned k = 0; k < 16; ++k)
      d[i] += element(all.of<Held>(row % 8 * 4 + k % 8 / 2).a[row / 8 + k / 8 * 2], k % 2) *
              element(all.of<Held>(column * 4 + k % 8 / 2).b[k / 8], k % 2);
  }
}

}  // namespace bertrand::cuda
