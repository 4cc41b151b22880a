// A polynomial at a point that is drawn.
#include "io/seeded_hash.h"

#include <cstdint>
#include <random>

namespace bertrand::io {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::size_t kPartBytes = 7;  // and their number: a coefficient below the prime

std::uint64_t draw_key() {
  std::random_device random;
  const std::uint64_t bits = (std::uint64_t{random()} << 32) | random();
  return 1 + bits % (kPrime - 1);
}

/// a · b modulo the prime, or a little more; a below 2^62.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  const Wide whole = Wide{a} * b;
  const std::uint64_t sum = static_cast<std::uint64_t>(whole & kPrime) + static_cast<std::uint64_t>(whole >> 61);
  return (sum & kPrime) + (sum >> 61);
}

}  // namespace

std::size_t SeededHash::operator()(std::string_view text) const {
  static const std::uint64_t key = draw_key();
  std::uint64_t hash = 0;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, kPartBytes);
    std::uint64_t number = part.size();  // else a NUL at the end would change nothing
    for (const char byte : part) number = number << 8 | static_cast<unsigned char>(byte);
    hash = product(hash + number, key);
    text.remove_prefix(part.size());
  }
  return hash;
}

}  // namespace bertrand::io
