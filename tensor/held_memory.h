// How much memory a CPU backend holds for tensors that come later.
#pragma once
#include <algorithm>
#include <cstddef>

namespace bertrand {

/// Bytes that are held at most, of tensors and free, if at most `peak` bytes were in use: a sixteenth more, so that
/// blocks of other sizes find room between those in use, and at least 8 MiB more, so that small models give nothing
/// back to the system between one batch and the next of another length.
constexpr std::size_t most_held(std::size_t peak) { return peak + std::max(peak / 16, std::size_t{8} << 20); }

}  // namespace bertrand
