#include "io/file_checksum.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "io/crc32c.h"
#include "io/descriptor.h"
#include "io/error.h"
#include "io/files.h"
#include "io/in_threads.h"
#include "io/signals.h"

namespace bertrand::io {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kBufferBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::uint64_t kBlocks = 16;

/// A file whose bytes are read at any place.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& file) : file_(file), descriptor_(open_to_read(file)) {
    if (!descriptor_) refuse_call(file, "open", errno);
  }

  /// The checksum of `seed`'s bytes and these.
  std::uint32_t crc32c(std::uint64_t offset, std::uint64_t bytes, std::uint32_t seed) {
    buffer_.resize(std::min(bytes, kBufferBytes));
    while (bytes > 0) {
      const ssize_t count = read_at(descriptor_.number(), buffer_.data(), std::min(bytes, kBufferBytes), offset);
      if (count < 0) refuse_call(file_, "read", errno);
      if (count == 0) fail(Failure::io, "{}: read: expected {} more bytes, got the end of it", file_.string(), bytes);
      const auto got = static_cast<std::uint64_t>(count);
      seed = io::crc32c(std::string_view(buffer_).substr(0, got), seed);
      offset += got;
      bytes -= got;
    }
    return seed;
  }

 private:
  const std::filesystem::path& file_;
  const Descriptor descriptor_;
  std::string buffer_;
};

struct Piece {
  std::size_t file;
  std::uint64_t offset, bytes;
  std::uint32_t crc32c = 0;
};

}  // namespace

std::vector<std::uint32_t> crc32c_of_files(std::span<const std::filesystem::path> files, int threads) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::uint64_t size = std::filesystem::file_size(files[i]);
    for (std::uint64_t offset = 0; offset < size; offset += kPieceBytes)
      pieces.push_back({.file = i, .offset = offset, .bytes = std::min(kPieceBytes, size - offset)});
  }
  in_threads(pieces.size(), threads, [&](std::size_t i) {
    leave_if_requested("comparing checksums");
    pieces[i].crc32c = OpenFile(files[pieces[i].file]).crc32c(pieces[i].offset, pieces[i].bytes, 0);
  });
  std::vector<std::uint32_t> sums(files.size(), 0);
  for (const Piece& piece : pieces) sums[piece.file] = crc32c_joined(sums[piece.file], piece.crc32c, piece.bytes);
  return sums;
}

std::uint32_t crc32c_of_sample(const std::filesystem::path& file) {
  OpenFile in(file);
  const std::uint64_t size = std::filesystem::file_size(file);
  if (size <= kBlocks * kBlockBytes) return in.crc32c(0, size, 0);
  std::uint32_t sum = 0;
  for (std::uint64_t i = 0; i < kBlocks; ++i)
    sum = in.crc32c((size - kBlockBytes) / (kBlocks - 1) * i + (size - kBlockBytes) % (kBlocks - 1) * i / (kBlocks - 1),
                    kBlockBytes, sum);
  return sum;
}

}  // namespace bertrand::io
