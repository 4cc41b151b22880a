// Checksums of files that may be larger than memory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace bertrand::io {

/// The CRC-32C of every byte of each file. Pieces of 16 MB are read at a time, one for each of `threads`, so that one
/// large file keeps all of them busy. Throws Error(Failure::io) if a file cannot be read or becomes shorter meanwhile,
/// Error(Failure::interrupted) if leave_requested().
std::vector<std::uint32_t> crc32c_of_files(std::span<const std::filesystem::path> files, int threads);

/// The CRC-32C of 16 blocks of 4 KiB end to end: the first bytes of the file, its last, and 14 at equal distances
/// between; of a file of at most 64 KiB, that of every byte. It tells files apart without reading them through. Throws
/// Error(Failure::io).
std::uint32_t crc32c_of_sample(const std::filesystem::path& file);

}  // namespace bertrand::io
