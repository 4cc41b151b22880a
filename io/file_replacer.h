// A file that is there whole or not at all.
#pragma once
#include <optional>

#include "io/files.h"
#include "io/temporary_name.h"

namespace bertrand::io {

/// Whether nothing or a regular file is there. A link is written through: replacing it would leave what it points to as
/// it was. But one of another user's is replaced, unless a pipe or device is behind it: they may have planted it.
bool is_replaceable(const std::filesystem::path& file);

/// A file that appears under its name only when it is whole: written beside it, made durable, renamed. Without
/// publish() nothing is left of it, unless the process is killed: then the next one that writes the file removes it.
/// What is not replaceable (a pipe, a link, /dev/stdout) is written as it is.
class FileReplacer {
 public:
  FileReplacer(Files& files, const std::filesystem::path& file);
  ~FileReplacer();
  FileReplacer(const FileReplacer&) = delete;
  FileReplacer& operator=(const FileReplacer&) = delete;

  void write(std::string_view text) { writer_->write(text); }
  /// Makes everything written durable, still under its other name.
  void finish();
  /// finish() if it was not called, then the rename.
  void publish();

 private:
  Files& files_;
  std::filesystem::path file_;
  std::optional<FileWriter> writer_;
  std::optional<TemporaryName> staged_;  // none if it is written as it is
  bool finished_ = false, in_place_ = false;
};

/// replace_file() of the parts that `fill` gives to the function that it gets: the text is never whole in memory.
void replace_in_parts(Files& files, const std::filesystem::path& file, const auto& fill) {
  FileReplacer out(files, file);
  fill([&](std::string_view part) { out.write(part); });
  out.publish();
}

}  // namespace bertrand::io
