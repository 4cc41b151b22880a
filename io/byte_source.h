// The bytes of a file, a pipe or a terminal from front to end, decompressed if it is a file of gzip or Zstandard.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/decompressor.h"
#include "io/descriptor.h"

namespace bertrand::io {

/// What a compressed file may become if all of it is held in memory: 10 kB may be 10 MB of zeros.
constexpr std::uint64_t kMostDecompressed = std::uint64_t{4} << 30;
/// Throws Error(Failure::input) if `bytes` out of a compressed file are more than `most`.
void check_decompressed(const std::filesystem::path& file, std::uint64_t bytes, std::uint64_t most);

class ByteSource {
 public:
  static constexpr std::size_t kBeginning = 12;

  /// Opens a file of `what`; an empty path is standard input. `is_plain` looks at its first kBeginning bytes (or
  /// fewer): a file that only happens to begin as a compressed one does. What has no beginning to come back to (a pipe,
  /// a terminal) is taken as it is. Throws Error(Failure::input) if there is none or a directory, or one that is called
  /// .gz or .zst and is not compressed, as an empty one, and Error(Failure::io) if it cannot be read.
  explicit ByteSource(const std::filesystem::path& file, std::string_view what,
                      const std::function<bool(std::string_view)>& is_plain = {});

  bool is_compressed() const { return decompressor_ != nullptr; }
  /// Reads up to `size` bytes; fewer only at the end of the file. Throws Error(Failure::io).
  std::size_t read(char* out, std::size_t size);
  /// Reads what is there, at least one byte and up to `size`; 0 at the end. Throws Error(Failure::io).
  std::size_t read_some(char* out, std::size_t size);
  /// Whether read_some() need not wait; asks for so long.
  bool is_ready(int milliseconds = 0) const;
  /// Waits for that. False if the process is asked to leave before; all that read then throw
  /// Error(Failure::interrupted).
  bool wait() const;
  /// Why compressed data ended early, or "".
  const std::string& damage() const { return damage_; }

 private:
  std::size_t read_plain(char* out, std::size_t size);
  std::size_t read_compressed(char* out, std::size_t size);

  std::string file_;
  Descriptor descriptor_;
  std::unique_ptr<Decompressor> decompressor_;
  std::string packed_;       // read for decompressor_
  std::string_view unread_;  // of packed_
  std::string damage_;
};

}  // namespace bertrand::io
