#include "io/gzip.h"

#include <algorithm>

#include "io/error.h"

namespace bertrand::io {

GzipStream::GzipStream(const std::string& file) : file_(file) {
  constexpr int kWindowOfGzip = MAX_WBITS + 16;  // gzip's header, and no other
  if (::inflateInit2(&stream_, kWindowOfGzip) != Z_OK) fail(Failure::memory, "{}: gzip: out of memory", file_);
}

GzipStream::~GzipStream() { ::inflateEnd(&stream_); }

std::size_t GzipStream::decompress(std::string_view& in, char* out, std::size_t size) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
  const auto room = static_cast<unsigned>(std::min(size, kMost));
  stream_.next_out = reinterpret_cast<Bytef*>(out);
  stream_.avail_out = room;
  while (stream_.avail_out > 0 && damage_.empty()) {
    // Zeros after a member fill a block of a tape. Anything else must be a member: nothing of a file is passed over.
    if (whole_) in.remove_prefix(std::min(in.find_first_not_of('\0'), in.size()));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // which zlib only reads
    stream_.avail_in = static_cast<unsigned>(std::min(in.size(), kMost));
    const auto given = stream_.avail_in;
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    in.remove_prefix(given - stream_.avail_in);
    if (code == Z_BUF_ERROR) break;  // it needs more bytes
    if (code == Z_MEM_ERROR) fail(Failure::memory, "{}: gzip: out of memory", file_);
    if (code != Z_OK && code != Z_STREAM_END) damage_ = stream_.msg != nullptr ? stream_.msg : ::zError(code);
    whole_ = code == Z_STREAM_END;
    if (whole_) ::inflateReset(&stream_);
  }
  return room - stream_.avail_out;
}

}  // namespace bertrand::io
