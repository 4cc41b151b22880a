// The Mersenne Twister, and Python's ways to draw from it.
#include "bert/data/python_random.h"

#include <algorithm>
#include <bit>

namespace bertrand::data {

// init_genrand(19650218) followed by init_by_array of the seed's 32-bit words.
PythonRandom::PythonRandom(std::int64_t seed) {
  const std::uint64_t magnitude = seed < 0 ? ~static_cast<std::uint64_t>(seed) + 1 : static_cast<std::uint64_t>(seed);
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(magnitude),
                                         static_cast<std::uint32_t>(magnitude >> 32)};
  const std::size_t key_size = key[1] != 0 ? 2 : 1;

  const auto scrambled = [this](std::size_t i) { return state_[i] ^ (state_[i] >> 30); };
  state_[0] = 19650218;
  for (std::uint32_t i = 1; i < kSize; ++i) state_[i] = 1812433253u * scrambled(i - 1) + i;

  std::size_t i = 1;
  const auto advance = [&] {
    if (++i == kSize) {
      state_[0] = state_[kSize - 1];
      i = 1;
    }
  };
  for (std::size_t k = 0; k < kSize; ++k) {
    const std::size_t j = k % key_size;
    state_[i] = (state_[i] ^ (scrambled(i - 1) * 1664525u)) + key[j] + static_cast<std::uint32_t>(j);
    advance();
  }
  for (std::size_t k = 0; k + 1 < kSize; ++k) {
    state_[i] = (state_[i] ^ (scrambled(i - 1) * 1566083941u)) - static_cast<std::uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000u;
}

void PythonRandom::refill() {
  constexpr std::size_t kShift = 397;
  for (std::size_t i = 0; i < kSize; ++i) {
    const std::uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % kSize] & 0x7FFFFFFFu);
    state_[i] = state_[(i + kShift) % kSize] ^ (y >> 1) ^ ((y & 1) ? 0x9908B0DFu : 0u);
  }
  used_ = 0;
}

std::uint32_t PythonRandom::next() {
  if (used_ == kSize) refill();
  std::uint32_t y = state_[used_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9D2C5680u;
  y ^= (y << 15) & 0xEFC60000u;
  return y ^ (y >> 18);
}

double PythonRandom::random() {
  const std::uint32_t high = next() >> 5;
  const std::uint32_t low = next() >> 6;
  return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

std::uint64_t PythonRandom::bits(int bits) {
  check(1 <= bits && bits <= 64, "getrandbits: expected 1 to 64 bits, got {}", bits);
  if (bits <= 32) return next() >> (32 - bits);
  const std::uint64_t low = next();
  return low | static_cast<std::uint64_t>(next() >> (64 - bits)) << 32;
}

std::uint64_t PythonRandom::below(std::uint64_t n) {
  check(n > 0, "_randbelow: expected a positive bound, got 0");
  const int width = static_cast<int>(std::bit_width(n));
  std::uint64_t drawn = bits(width);
  while (drawn >= n) drawn = bits(width);
  return drawn;
}

}  // namespace bertrand::data
