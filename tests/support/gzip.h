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

}  // namespace support
