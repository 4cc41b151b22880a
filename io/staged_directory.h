// A directory that is there whole or not at all.
#pragma once
#include <optional>

#include "io/files.h"
#include "io/temporary_name.h"

namespace bertrand::io {

/// A directory that appears under its name only when all its files are there: filled beside it, renamed. Without
/// publish() nothing is left of it, unless the process is killed: then the next one that writes it removes it.
class StagedDirectory {
 public:
  /// Throws Error(Failure::usage) as --`flag` if something has that name already, or if its parent is no directory.
  StagedDirectory(Files& files, const std::filesystem::path& directory, const std::string& flag);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  /// Where the files are written, each durable.
  const std::filesystem::path& path() const { return staged_->path(); }
  /// The rename.
  void publish();

 private:
  Files& files_;
  std::filesystem::path directory_;
  std::optional<TemporaryName> staged_;
  bool published_ = false;
};

}  // namespace bertrand::io
