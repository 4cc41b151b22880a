// Zstandard streams, by the library libzstd.so.1, which is opened when the first is read: every Debian has it, and no
// build needs it.
#pragma once
#include <string>
#include <string_view>

#include "io/decompressor.h"

namespace bertrand::io {

/// Whether a file that begins so is compressed by Zstandard (RFC 8878, 3.1): by a frame of data, or by one to be passed
/// over, as pzstd writes.
inline bool is_zstd(std::string_view beginning) {
  const bool is_passed_over =
      beginning.size() >= 4 && (beginning[0] & 0xF0) == 0x50 && beginning.substr(1, 3) == "\x2A\x4D\x18";
  return is_passed_over || beginning.starts_with("\x28\xB5\x2F\xFD");
}

class ZstdStream : public Decompressor {
 public:
  /// `file` begins messages. Throws Error(Failure::io) if there is no library, and Error(Failure::memory).
  explicit ZstdStream(const std::string& file);
  ~ZstdStream() override;

  std::size_t decompress(std::string_view& in, char* out, std::size_t size) override;

 private:
  struct Library;
  static const Library& library(const std::string& file);

  const Library& library_;
  void* stream_;
};

}  // namespace bertrand::io
