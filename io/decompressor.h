// Bytes of a compressed file that come in parts.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace bertrand::io {

class Decompressor {
 public:
  Decompressor() = default;
  virtual ~Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// Takes bytes from the front of `in` and writes to `out`; returns how many it wrote. Stops when `out` is full or
  /// `in` is empty and nothing is left inside. Throws Error(Failure::memory).
  virtual std::size_t decompress(std::string_view& in, char* out, std::size_t size) = 0;
  /// Whether what was begun has ended: a member of gzip, a frame of Zstandard. Several may follow each other.
  bool is_whole() const { return whole_; }
  /// What is wrong with the data, or "". Nothing is decompressed after it.
  const std::string& damage() const { return damage_; }

 protected:
  bool whole_ = true;
  std::string damage_;
};

}  // namespace bertrand::io
