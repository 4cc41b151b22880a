// Pieces of a tensor and the CRC of all.
#include "io/tensor_source.h"

#include <algorithm>

#include "io/crc32c.h"

namespace bertrand::io {

std::uint32_t read_in_pieces(const TensorSource& source, const std::function<void(std::span<const std::byte>)>& take) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::uint32_t crc = 0;
  std::vector<std::byte> piece;
  for (std::uint64_t first = 0; first < source.bytes; first += piece.size()) {
    piece.resize(std::min(kPiece, source.bytes - first));
    source.read(first, piece);
    crc = crc32c(piece, crc);
    take(piece);
  }
  return crc;
}

}  // namespace bertrand::io
