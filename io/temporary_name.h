// The name under which something is written until it is whole.
#pragma once
#include <filesystem>
#include <functional>

#include "io/descriptor.h"
#include "io/files.h"

namespace bertrand::io {

/// FILE.tmp-HOST-PID, of this process. A process writes a file once at a time, and so do processes that have host name
/// and number in common, as those of two containers may.
std::filesystem::path temporary_name(const std::filesystem::path& file);

/// Removes what has a temporary name, unless a living process writes it, as far as the file system tells. Throws
/// Error(Failure::io) if it cannot be removed, or if no further file can be opened, so that this is not known.
void remove_unless_written(Files& files, const std::filesystem::path& path);

/// A file or directory under its temporary name. As long as this lives, it is locked (flock): the system gives the lock
/// back however the process ends. So what is not locked was left by a process that died, whoever has its number now,
/// and the next one that writes the same file removes it. Names of other hosts are left alone, since not every shared
/// file system tells of the locks of others: what a container left that had another host name stays, and somebody may
/// remove it. NFS locks no directory: there only what has this process's own name is taken for left.
class TemporaryName {
 public:
  /// Removes what dead processes left, then calls create(name), which must make it or throw.
  TemporaryName(const std::filesystem::path& file, const std::function<void(const std::filesystem::path&)>& create);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor lock_;  // none if there are no locks
};

}  // namespace bertrand::io
