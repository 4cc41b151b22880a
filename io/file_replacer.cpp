#include "io/file_replacer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace bertrand::io {

namespace fs = std::filesystem;

bool is_replaceable(const fs::path& file) {
  return !fs::exists(fs::symlink_status(file)) || (fs::is_regular_file(file) && !fs::is_symlink(file));
}

namespace {

/// A free name beside `file`: what a process of our number left there when it died goes.
fs::path free_name_beside(const fs::path& file) {
  fs::path staged = fmt::format("{}.tmp-{}", file.string(), ::getpid());
  std::error_code ignored;  // the call that creates the file says why it cannot
  if (!fs::is_directory(fs::symlink_status(staged, ignored))) fs::remove(staged, ignored);
  return staged;
}

}  // namespace

FileReplacer::FileReplacer(Files& files, const fs::path& file)
    : files_(files),
      file_(file),
      staged_(is_replaceable(file) ? free_name_beside(file) : file),
      writer_(files, staged_, staged_ == file ? FileWriter::Opening::replace : FileWriter::Opening::create_new) {}

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
