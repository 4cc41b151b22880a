// NumPy's file of one array, format 1.0 (numpy.lib.format): what numpy.load opens.
#pragma once
#include <span>
#include <string>

namespace bertrand::io {

/// The header of an array of little-endian 32-bit floats in C order, whose values follow it. Its length is a multiple
/// of 64 bytes, so that they are aligned.
std::string npy_header(std::span<const std::size_t> shape);

}  // namespace bertrand::io
