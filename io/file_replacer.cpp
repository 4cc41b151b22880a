#include "io/file_replacer.h"

#include <utility>

#include "io/descriptor.h"
#include "io/file_names.h"

namespace bertrand::io {

namespace fs = std::filesystem;

bool is_replaceable(const fs::path& file) {
  std::error_code ignored;  // of a link that leads to itself
  const fs::file_status status = fs::symlink_status(file);
  if (fs::is_symlink(status)) return is_of_another_user(file) && !fs::is_other(file, ignored);
  return !fs::exists(status) || fs::is_regular_file(status);
}

FileReplacer::FileReplacer(Files& files, const fs::path& file) : files_(files), file_(file) {
  if (!is_replaceable(file)) {
    writer_.emplace(files, file, Opening::create_through);
    return;
  }
  staged_.emplace(file, [&](const fs::path& staged) { writer_.emplace(files, staged, Opening::create_new); });
}

FileReplacer::~FileReplacer() {
  std::error_code ignored;
  if (!in_place_ && staged_) fs::remove(staged_->path(), ignored);
}

void FileReplacer::finish() {
  if (!std::exchange(finished_, true)) writer_->finish();
}

void FileReplacer::publish() {
  finish();
  if (!staged_) return;
  files_.rename(staged_->path(), file_);
  in_place_ = true;
  files_.sync_directory(parent_of(file_));
}

}  // namespace bertrand::io
