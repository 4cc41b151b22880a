// Lines from a file, a pipe or a terminal, as they come.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "io/byte_source.h"

namespace bertrand::predict {

class LineReader {
 public:
  static constexpr std::size_t kLongest = std::size_t{1} << 26;  ///< bytes of a line

  /// Opens a file, which may be a gzip file, a pipe or a device; an empty path is standard input. Throws
  /// Error(Failure::input) if there is none, Error(Failure::io) if it cannot be opened.
  explicit LineReader(const std::filesystem::path& file);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// Waits for the next line and takes it, without its LF or CRLF. False at the end, and if a signal asks to leave.
  /// Throws Error(Failure::input) for a line that is too long and for a damaged gzip file, and Error(Failure::io).
  bool next(std::string& line);
  /// Whether next() need not wait.
  bool is_ready();

  std::uint64_t number() const { return number_; }   ///< of the last line, from 1
  const std::string& name() const { return name_; }  ///< of the file, for messages

 private:
  bool has_line();
  bool wait(int milliseconds);
  void read_more();

  std::string name_;
  std::unique_ptr<io::ByteSource> source_;  // of a regular file
  int descriptor_ = -1;                     // of anything else
  std::string buffer_;
  std::size_t begin_ = 0;     // of the next line in the buffer
  std::size_t searched_ = 0;  // up to here there is no line end behind begin_
  bool ended_ = false;
  std::uint64_t number_ = 0;
};

}  // namespace bertrand::predict
