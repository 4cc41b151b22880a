// A file that is there whole or not at all.
#pragma once
#include "io/files.h"

namespace bertrand::io {

/// Whether nothing or a regular file is there. A link is written through: replacing it would leave what it points to as
/// it was.
bool is_replaceable(const std::filesystem::path& file);

/// A file that appears under its name only when it is whole: written beside it, made durable, renamed. Without
/// publish() nothing is left of it. What is no regular file (a pipe, a link, /dev/stdout) is written as it is.
class FileReplacer {
 public:
  FileReplacer(Files& files, const std::filesystem::path& file);
  ~FileReplacer();
  FileReplacer(const FileReplacer&) = delete;
  FileReplacer& operator=(const FileReplacer&) = delete;

  void write(std::string_view text) { writer_.write(text); }
  /// Makes everything written durable, still under its other name.
  void finish();
  /// finish() if it was not called, then the rename.
  void publish();

 private:
  Files& files_;
  std::filesystem::path file_, staged_;
  FileWriter writer_;
  bool finished_ = false, in_place_ = false;
};

}  // namespace bertrand::io
