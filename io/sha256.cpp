#include "io/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace bertrand::io {
namespace {

constexpr std::size_t kBlock = 64;

alignas(16) constexpr std::array<std::uint32_t, 64> kConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void add_block_portably(Sha256State& state, const std::byte* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < kBlock; ++i) w[i / 4] = w[i / 4] << 8 | std::to_integer<std::uint32_t>(block[i]);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kConstants[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const Sha256State added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
}

#if defined(__x86_64__)
/// Whether the processor has instructions of its own for a block. They are for speed alone.
bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSha = 1U << 29;
  return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & kSha) != 0;
}

/// The instructions hold the state as two registers, ABEF and CDGH, and take two rounds at a time. Four registers hold
/// the last 16 words of the message schedule (Gulley et al., Intel SHA Extensions, 2013).
__attribute__((target("sha,sse4.1"))) void add_by_instructions(Sha256State& state, std::span<const std::byte> blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto load = [](const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
  const __m128i low = load(state.data()), high = load(state.data() + 4);  // DCBA, HGFE
  const __m128i cdab = _mm_shuffle_epi32(low, 0xB1), efgh = _mm_shuffle_epi32(high, 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (; !blocks.empty(); blocks = blocks.subspan(kBlock)) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (std::size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(blocks.data() + 16 * i), big_endian);
    for (std::size_t i = 0; i < 16; ++i) {  // four rounds each
      __m128i& now = w[i % 4];
      if (i >= 4) {
        const __m128i last = w[(i + 3) % 4], seven_before = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
        now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), seven_before), last);
      }
      const __m128i sum = _mm_add_epi32(now, load(kConstants.data() + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

}  // namespace

void add_sha256_blocks_portably(Sha256State& state, std::span<const std::byte> blocks) {
  for (; !blocks.empty(); blocks = blocks.subspan(kBlock)) add_block_portably(state, blocks.data());
}

void add_sha256_blocks(Sha256State& state, std::span<const std::byte> blocks) {
#if defined(__x86_64__)
  static const bool is_fast = has_instructions();
  if (is_fast) return add_by_instructions(state, blocks);  // for speed alone
#endif
  add_sha256_blocks_portably(state, blocks);
}

void Sha256::add(std::span<const std::byte> bytes) {
  const std::size_t held = size_ % kBlock;
  size_ += bytes.size();
  if (held > 0) {  // for speed alone: else whole blocks are not copied
    const auto head = bytes.first(std::min(kBlock - held, bytes.size()));
    std::ranges::copy(head, pending_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(head.size());
    if (held + head.size() < kBlock) return;
    add_sha256_blocks(state_, pending_);
  }
  const auto whole = bytes.first(bytes.size() / kBlock * kBlock);
  add_sha256_blocks(state_, whole);
  std::ranges::copy(bytes.subspan(whole.size()), pending_.begin());
}

std::string Sha256::hex() const {
  // A bit of 1, bits of 0 up to 8 bytes before a block's end, and there the number of bits.
  const std::size_t held = size_ % kBlock;
  std::array<std::byte, 2 * kBlock> end{};
  std::copy_n(pending_.begin(), held, end.begin());
  end[held] = std::byte{0x80};
  const std::size_t size = held < kBlock - 8 ? kBlock : 2 * kBlock;
  for (std::size_t i = 0; i < 8; ++i) end[size - 1 - i] = static_cast<std::byte>(size_ * 8 >> (8 * i));
  Sha256State state = state_;
  add_sha256_blocks(state, std::span(end).first(size));
  std::string digits;
  for (const std::uint32_t word : state) digits += fmt::format("{:08x}", word);
  return digits;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

}  // namespace bertrand::io
