// The lines of a text file, which may be a gzip file, one after the other.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/byte_source.h"

namespace bertrand::io {

class LineSource {
 public:
  /// Opens a file of `what`. Throws as ByteSource does.
  LineSource(const std::filesystem::path& file, std::string_view what) : name_(file.string()), source_(file, what) {}

  /// The next line without its LF or CRLF, valid until the next call; false at the end. A last line without an end
  /// counts, an empty one after the last end does not. Throws Error(Failure::input) for a NUL and for a gzip file that
  /// is cut, Error(Failure::io) if the file cannot be read.
  bool next(std::string_view& line);

  std::int64_t number() const { return number_; }  ///< of the line that was read last, from 1
  /// "file:line", for messages.
  std::string where() const;
  const std::string& name() const { return name_; }

 private:
  bool fill();

  std::string name_;
  ByteSource source_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what is not read yet, in the buffer
  std::int64_t number_ = 0;
  bool ended_ = false;
};

}  // namespace bertrand::io
