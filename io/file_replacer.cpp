#include "io/file_replacer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace bertrand::io {

namespace fs = std::filesystem;

bool is_replaceable(const fs::path& file) {
  return !fs::exists(fs::symlink_status(file)) || (fs::is_regular_file(file) && !fs::is_symlink(file));
}

FileReplacer::FileReplacer(Files& files, const fs::path& file)
    : files_(files),
      file_(file),
      staged_(is_replaceable(file) ? fs::path(fmt::format("{}.tmp-{}", file.string(), ::getpid())) : file),
      writer_(files, staged_) {}

FileReplacer::~FileReplacer() {
  std::error_code ignored;
  if (!in_place_ && staged_ != file_) fs::remove(staged_, ignored);
}

void FileReplacer::finish() {
  if (!std::exchange(finished_, true)) writer_.finish();
}

void FileReplacer::publish() {
  finish();
  if (staged_ == file_) return;
  files_.rename(staged_, file_);
  in_place_ = true;
  files_.sync_directory(file_.parent_path().empty() ? "." : file_.parent_path());
}

}  // namespace bertrand::io
