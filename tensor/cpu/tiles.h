// The tile unit of processors with AMX: eight registers of 16 rows of 64 bytes, and an instruction that multiplies bf16
// matrices of 16 × 32 and 32 × 16. Each operation is written twice, as the instruction and in plain C++, which serves
// the tests on processors without the unit and says what the instructions do.
//   Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18; volume 2, TDPBF16PS
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/cpu/half_packets.h"
#include "tensor/shape.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace bertrand::cpu {

/// While it lives, this thread's fused multiply-adds take numbers below 2^-126 for 0, given or made.
#if defined(__SSE__)
class NoSubnormals {
 public:
  NoSubnormals() { _mm_setcsr(before_ | kResultsAreZero | kOperandsAreZero); }
  ~NoSubnormals() { _mm_setcsr(before_); }
  NoSubnormals(const NoSubnormals&) = delete;
  NoSubnormals& operator=(const NoSubnormals&) = delete;

 private:
  static constexpr unsigned kResultsAreZero = 1u << 15, kOperandsAreZero = 1u << 6;
  const unsigned before_ = _mm_getcsr();
};
#elif defined(__aarch64__)
class NoSubnormals {
 public:
  NoSubnormals() { set(before_ | kFlushToZero); }
  ~NoSubnormals() { set(before_); }
  NoSubnormals(const NoSubnormals&) = delete;
  NoSubnormals& operator=(const NoSubnormals&) = delete;

 private:
  static constexpr std::uint64_t kFlushToZero = 1u << 24;
  static void set(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
  static std::uint64_t get() {
    std::uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  const std::uint64_t before_ = get();
};
#else
class NoSubnormals {};
#endif

namespace tiles {

inline constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;
inline constexpr int kDepth = 32;  ///< k of one product: rows of A hold as many bf16, rows of B pairs of k and k + 1

// Rows of a tile in memory lie `stride` bytes apart. A number of a tile is a constant, because it is a part of the
// instruction. g++ 12's own functions neither say which memory they read (of a configuration on the stack the stores
// are removed) nor keep their order with other stores; these do both.

#if !defined(BERTRAND_EMULATED_TILES)

/// While it lives, this thread may use the tiles. Configuring costs less than a tile's product, so a thread does it for
/// each panel of rows and keeps nothing that the system would have to save when the thread waits.
class Unit {
 public:
  Unit() {
    struct alignas(64) Configuration {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const configuration;
    static_assert(sizeof configuration == 64);
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  ~Unit() { asm volatile("tilerelease"); }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
};

template <int N>
void zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(N));
}
template <int N>
void load(const void* from, Dim stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(N) : "memory");
}
/// Of what is read once: it does not push what is used again out of the first-level cache.
template <int N>
void load_streamed(const void* from, Dim stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(N) : "memory");
}
template <int N>
void store(void* to, Dim stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(N) : "memory");
}
/// C += A · B. For each element, even and odd k are two chains of fused multiply-adds from zero, whose sum is added.
template <int C, int A, int B>
void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}

#else

struct Tile {
  alignas(64) std::uint32_t words[kRows][kRowBytes / 4];
};
inline thread_local Tile tile[kTiles];
inline thread_local bool configured = false;

class Unit {
 public:
  Unit() { configured = true; }
  ~Unit() {
    configured = false;
    std::memset(tile, 0xff, sizeof tile);  // NaN, which shows if they are read later
  }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

 private:
  NoSubnormals mode_;
};

inline Tile& used(int n) {
  if (!configured) __builtin_trap();  // as the processor does
  return tile[n];
}
template <int N>
void zero() {
  used(N) = {};
}
template <int N>
void load(const void* from, Dim stride) {
  for (int i = 0; i < kRows; ++i) std::memcpy(used(N).words[i], static_cast<const char*>(from) + i * stride, kRowBytes);
}
template <int N>
void load_streamed(const void* from, Dim stride) {
  load<N>(from, stride);
}
template <int N>
void store(void* to, Dim stride) {
  for (int i = 0; i < kRows; ++i) std::memcpy(static_cast<char*>(to) + i * stride, used(N).words[i], kRowBytes);
}
template <int C, int A, int B>
void multiply() {
  const Tile &a = used(A), &b = used(B);
  const auto even = [](std::uint32_t pair) { return std::bit_cast<float>(pair << 16); };
  const auto odd = [](std::uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000u); };
  for (int i = 0; i < kRows; ++i) {
    float evens[kRows] = {}, odds[kRows] = {};
    for (int pair = 0; pair < kDepth / 2; ++pair)
      for (int j = 0; j < kRows; ++j) {
        evens[j] = std::fma(even(a.words[i][pair]), even(b.words[pair][j]), evens[j]);
        odds[j] = std::fma(odd(a.words[i][pair]), odd(b.words[pair][j]), odds[j]);
      }
    for (int j = 0; j < kRows; ++j) {
      std::uint32_t& c = used(C).words[i][j];
      c = std::bit_cast<std::uint32_t>(std::bit_cast<float>(c) + (evens[j] + odds[j]));
    }
  }
}

#endif

}  // namespace tiles
}  // namespace bertrand::cpu
