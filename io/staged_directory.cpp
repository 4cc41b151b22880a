// A directory filled under another name.
#include "io/staged_directory.h"

#include <cerrno>

#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_names.h"

namespace bertrand::io {

namespace fs = std::filesystem;

StagedDirectory::StagedDirectory(Files& files, const fs::path& directory, const std::string& flag)
    : files_(files), directory_(without_slash(directory)) {
  check_new_directory(flag, directory_);
  staged_.emplace(directory_, [&](const fs::path& staged) {
    if (fs::exists(fs::symlink_status(staged))) refuse_call(staged, "mkdir", EEXIST);  // with somebody's files in it
    files_.make_directory(staged);
  });
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  if (!published_) fs::remove_all(path(), ignored);
}

void StagedDirectory::publish() {
  files_.sync_directory(path());
  files_.rename(path(), directory_);
  published_ = true;
  files_.sync_directory(parent_of(directory_));
}

}  // namespace bertrand::io
