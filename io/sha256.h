// SHA-256 (FIPS 180-4), by which weights and published files are told apart.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bertrand::io {

/// The hash of bytes that come in parts.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view bytes) { add(std::as_bytes(std::span(bytes.data(), bytes.size()))); }
  /// The hash of all bytes so far, in 64 hexadecimal digits.
  std::string hex() const;

 private:
  static constexpr std::size_t kBlock = 64;
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> pending_{};  // the first size_ % 64 bytes wait for a whole block
  std::uint64_t size_ = 0;
};

/// The hash of `bytes`.
std::string sha256(std::string_view bytes);

/// The state after these whole blocks of 64 bytes. The second takes no instruction that a processor may lack.
using Sha256State = std::array<std::uint32_t, 8>;
void add_sha256_blocks(Sha256State& state, std::span<const std::byte> blocks);
void add_sha256_blocks_portably(Sha256State& state, std::span<const std::byte> blocks);

}  // namespace bertrand::io
