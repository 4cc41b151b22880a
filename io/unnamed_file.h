// A file for what is larger than memory.
#pragma once
#include "io/files.h"

namespace bertrand::io {

/// A file without a name, which is gone when the program ends, however it ends.
class UnnamedFile {
 public:
  /// Makes it as `file`, which must not be there, and removes the name.
  UnnamedFile(Files& files, const std::filesystem::path& file);
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  void append(std::span<const std::byte> bytes) { files_.write(write_descriptor_, bytes, file_); }
  int descriptor() const { return read_descriptor_; }  ///< to read from
  /// A name that Linux gives it as long as this lives, to map it.
  std::filesystem::path name_to_map() const;
  const std::filesystem::path& path() const { return file_; }

 private:
  Files& files_;
  std::filesystem::path file_;
  int write_descriptor_, read_descriptor_;
};

}  // namespace bertrand::io
