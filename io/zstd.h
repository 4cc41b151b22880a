// Zstandard streams, by the library libzstd.so.1, which is opened when the first is read: every Debian has it, and no
// build needs it.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace bertrand::io {

/// Whether a file that begins so is compressed by Zstandard (RFC 8878, 3.1.1).
inline bool is_zstd(std::string_view beginning) { return beginning.starts_with("\x28\xB5\x2F\xFD"); }

/// Decompresses bytes that come in parts; several frames may follow each other.
class ZstdStream {
 public:
  /// `file` begins messages. Throws Error(Failure::io) if there is no library, and Error(Failure::memory).
  explicit ZstdStream(const std::string& file);
  ~ZstdStream();
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  /// Takes bytes from the front of `in` and writes to `out`; returns how many it wrote. Stops when `out` is full or
  /// `in` is empty and nothing is left inside.
  std::size_t decompress(std::string_view& in, char* out, std::size_t size);
  /// Whether the last frame has ended.
  bool is_whole() const { return whole_; }
  /// What is wrong with the data, or "". Nothing is decompressed after it.
  const std::string& damage() const { return damage_; }

 private:
  struct Library;
  static const Library& library(const std::string& file);

  const Library& library_;
  void* stream_;
  bool whole_ = true;
  std::string damage_;
};

}  // namespace bertrand::io
