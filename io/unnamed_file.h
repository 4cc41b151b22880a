// A file for what is larger than memory.
#pragma once
#include "io/descriptor.h"
#include "io/files.h"

namespace bertrand::io {

/// A file without a name, which is gone when the program ends, however it ends.
class UnnamedFile {
 public:
  /// Makes it under a name of its own that begins with `file`, and removes the name.
  UnnamedFile(Files& files, const std::filesystem::path& file);

  void append(std::span<const std::byte> bytes) { files_.write(to_write_.number(), bytes, file_); }
  int descriptor() const { return to_read_.number(); }  ///< to read from
  /// A name that Linux gives it as long as this lives, to map it.
  std::filesystem::path name_to_map() const;
  const std::filesystem::path& path() const { return file_; }

 private:
  Files& files_;
  std::filesystem::path file_;
  Descriptor to_write_, to_read_;
};

}  // namespace bertrand::io
