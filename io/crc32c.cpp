#include "io/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace bertrand::io {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
constexpr std::uint32_t kMaskDelta = 0xA282EAD8;

// kTables[k][b]: the crc of byte b followed by k zero bytes, so that eight bytes are taken in one step.
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}();

std::uint32_t update_by_table(std::uint32_t crc, const unsigned char* p, std::size_t n) {
  for (; n >= 8; p += 8, n -= 8) {  // eight at once, for speed alone
    std::uint32_t next = 0;
    for (std::size_t k = 0; k < 4; ++k) next ^= kTables[7 - k][(p[k] ^ (crc >> (8 * k))) & 0xFF];
    for (std::size_t k = 4; k < 8; ++k) next ^= kTables[7 - k][p[k]];
    crc = next;
  }
  for (; n > 0; ++p, --n) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t update_by_instruction(std::uint32_t crc, const unsigned char* p,
                                                                      std::size_t n) {
  std::uint64_t wide = crc;
  for (; n >= 8; p += 8, n -= 8) {  // eight at once, for speed alone
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; n > 0; ++p, --n) crc = _mm_crc32_u8(crc, *p);
  return crc;
}
#endif

std::uint32_t update(std::uint32_t crc, const unsigned char* p, std::size_t n) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return update_by_instruction(crc, p, n);  // for speed alone
#endif
  return update_by_table(crc, p, n);
}

/// The product of two polynomials modulo that of the checksum. Bit 31 is the coefficient of x^0.
std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if (a >> 31) product ^= b;
    b = (b >> 1) ^ ((b & 1) ? kPolynomial : 0);
  }
  return product;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  return ~update(~seed, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) {
  return crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())), seed);
}

std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t seed) {
  return ~update_by_table(~seed, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

/// The bytes of the second run move the first one up, each by x^8.
std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  std::uint32_t power = 1U << 23;  // x^8, squared for each bit of the length
  for (; second_bytes != 0; second_bytes >>= 1) {
    if (second_bytes & 1) first = multiply(first, power);
    power = multiply(power, power);
  }
  return first ^ second;
}

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + kMaskDelta; }

}  // namespace bertrand::io
