// The lines of a text, one after the other: of a file, which may be compressed, of a pipe, or of a terminal.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/byte_source.h"

namespace bertrand::io {

class LineSource {
 public:
  static constexpr std::size_t kLongest = std::size_t{1} << 26;  ///< bytes of a line

  /// Opens a file of `what`; an empty path is standard input. Throws as ByteSource does.
  LineSource(const std::filesystem::path& file, std::string_view what)
      : name_(file.empty() ? "standard input" : file.string()), source_(file, what) {}

  /// The next line without its LF or CRLF, the first one without a byte order mark, valid until the next call; false at
  /// the end. A last line without an end counts, an empty one after the last end does not. Throws Error(Failure::input)
  /// for a NUL, a line that is too long and compressed data that is cut, Error(Failure::io) if the file cannot be read,
  /// and Error(Failure::interrupted) if a signal asks to leave while it waits.
  bool next(std::string_view& line);
  /// The same, whatever is in the line.
  bool next_raw(std::string_view& line);
  /// Whether next() need not wait.
  bool is_ready();
  /// If a line was refused because it is too long: passes over it, so that next() gives the one after it. Else false.
  bool skip_long_line();

  std::int64_t number() const { return number_; }  ///< of the line that was read last, from 1
  /// "file:line", for messages.
  std::string where() const;
  const std::string& name() const { return name_; }

 private:
  bool has_line();
  void fill();

  std::string name_;
  ByteSource source_;
  std::string buffer_;
  std::size_t begin_ = 0;     // of what is not read yet, in the buffer
  std::size_t searched_ = 0;  // the end of that line, or up to where there is none
  std::int64_t number_ = 0;
  bool ended_ = false;
};

}  // namespace bertrand::io
