// CRC-32C (Castagnoli), the checksum of TFRecord, TensorFlow checkpoints, TensorBoard events and our manifests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bertrand::io {

/// The CRC-32C of `bytes` (RFC 3720, appendix B.4). To continue over further bytes, pass the crc so far as `seed`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);
std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0);

/// The CRC-32C of two runs of bytes end to end, from that of each and the length of the second.
std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

/// What crc32c() computes on a processor without the instruction: so that tests may compare.
std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t seed = 0);

/// The form stored in files: rotated and offset, so that a crc over data that holds crcs stays a good one (LevelDB's
/// rule).
std::uint32_t masked(std::uint32_t crc);

}  // namespace bertrand::io
