// What memory a CPU backend counts for a tensor, and how much it holds for those that come later.
#pragma once
#include <algorithm>
#include <cstddef>

namespace bertrand {

/// The bytes that a tensor of so many counts for: devices give out pieces of 64 at least.
constexpr std::size_t counted_bytes(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64; }

/// Bytes that are held at most, of tensors and free, if at most `peak` bytes were in use: a sixteenth more, so that
/// blocks of other sizes find room between those in use, and at least 8 MiB more, so that small models give nothing
/// back to the system between one batch and the next of another length.
constexpr std::size_t most_held(std::size_t peak) { return peak + std::max(peak / 16, std::size_t{8} << 20); }

}  // namespace bertrand
