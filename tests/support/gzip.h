// Files that are packed with gzip.
#pragma once
#include <zlib.h>

#include <filesystem>
#include <string>

namespace support {

/// What a .gz file holds.
inline std::string unpacked(const std::filesystem::path& file) {
  gzFile in = gzopen(file.c_str(), "rb");
  std::string text;
  char block[1 << 16];
  for (int n; (n = gzread(in, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(n));
  gzclose(in);
  return text;
}

/// A file of one member.
inline std::string gzipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<unsigned>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace support
