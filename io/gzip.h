// gzip streams (RFC 1952), by zlib.
#pragma once
#include <zlib.h>

#include <string>
#include <string_view>

#include "io/decompressor.h"

namespace bertrand::io {

/// Whether a file that begins so is compressed by gzip (RFC 1952, 2.3.1).
inline bool is_gzip(std::string_view beginning) { return beginning.starts_with("\x1F\x8B"); }

class GzipStream : public Decompressor {
 public:
  /// `file` begins messages. Throws Error(Failure::memory).
  explicit GzipStream(const std::string& file);
  ~GzipStream() override;

  std::size_t decompress(std::string_view& in, char* out, std::size_t size) override;

 private:
  std::string file_;
  z_stream stream_{};
};

}  // namespace bertrand::io
