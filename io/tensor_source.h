// A tensor that is to be written to a file, whatever the file's form.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors_header.h"

namespace bertrand::io {

struct TensorSource {
  std::string name;
  const SafetensorsType* type = nullptr;
  std::vector<std::int64_t> dims;
  std::uint64_t bytes = 0;  ///< as type and dims ask for
  /// Fills `part` with the tensor's bytes from `first` on.
  std::function<void(std::uint64_t first, std::span<std::byte> part)> read;
};

/// Reads a source in pieces of 1 MiB, in their order. Returns the CRC-32C of all its bytes.
std::uint32_t read_in_pieces(const TensorSource& source, const std::function<void(std::span<const std::byte>)>& take);

}  // namespace bertrand::io
