// Texts that are made to be slow as the keys of a hash table.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace support {

/// Texts of 16 printable bytes, without quotes and backslashes, of which libstdc++'s std::hash is the same number. It
/// is MurmurHash64A with a seed that everybody knows: of any first 8 bytes the last 8 follow by the inverse of each
/// step.
inline std::vector<std::string> colliding_texts(std::size_t count) {
  constexpr std::uint64_t kFactor = 0xc6a4a7935bd1e995, kSeed = 0xc70f6907, kGoal = 1;
  std::uint64_t inverse = kFactor;  // modulo 2^64, by Newton's method
  for (int i = 0; i < 5; ++i) inverse *= 2 - kFactor * inverse;
  const auto mixed = [](std::uint64_t value) { return value ^ value >> 47; };  // is its own inverse
  std::mt19937_64 random(1);
  std::vector<std::string> texts;
  while (texts.size() < count) {
    std::array<char, 16> bytes;
    std::uint64_t draw = random();
    for (std::size_t i = 0; i < 8; ++i, draw >>= 6) bytes[i] = static_cast<char>('?' + draw % 28);
    std::uint64_t first = 0;
    std::memcpy(&first, bytes.data(), 8);
    const std::uint64_t hash = ((kSeed ^ 16 * kFactor) ^ mixed(first * kFactor) * kFactor) * kFactor;
    const std::uint64_t last = mixed((hash ^ kGoal * inverse) * inverse) * inverse;
    std::memcpy(bytes.data() + 8, &last, 8);
    bool is_printable = true;
    for (const char c : bytes) is_printable = is_printable && c > ' ' && c < '\x7f' && c != '"' && c != '\\';
    if (is_printable) texts.emplace_back(bytes.begin(), bytes.end());
  }
  return texts;
}

}  // namespace support
