// A text in blocks of whole lines, so that lines can be worked on in parallel and the text is never all in memory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "io/byte_source.h"

namespace bertrand::data {

/// Some lines of a file.
struct LineBlock {
  std::string text;
  std::uint64_t lines_before = 0;  ///< of the file
};

/// Reads a file, also compressed by gzip or Zstandard, or standard input, in blocks that end where a line ends. Lines
/// end at \n only.
class LineBlocks {
 public:
  /// Opens a file; an empty path is standard input. Throws Error(Failure::input) if it does not exist and
  /// Error(Failure::io) if it cannot be read.
  explicit LineBlocks(const std::filesystem::path& file);

  /// The next block: about `bytes`, at most io::LineSource::kLongest, or one line if that is longer; none at the end.
  /// Throws Error(Failure::io), and Error(Failure::input) for compressed data that is damaged and, as file:line, for a
  /// line of more than io::LineSource::kLongest bytes.
  std::optional<LineBlock> next(std::size_t bytes);

  /// Passes over so many bytes, before the first block; false if there are fewer. Throws as next() does.
  bool skip(std::uint64_t bytes);

  /// The file's name for messages.
  const std::string& name() const { return name_; }

 private:
  std::size_t read(char* out, std::size_t size);
  void count_lines(std::string_view bytes);

  std::string name_;
  io::ByteSource source_;
  std::uint64_t lines_ = 0;  // that were given or passed over
  std::string rest_;         // the beginning of a line that the last block did not take
  bool ended_ = false;
};

}  // namespace bertrand::data
