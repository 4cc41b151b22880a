// The run directory: who may write into it, and what it begins with.
#pragma once
#include <filesystem>

#include "bert/formats/files.h"

namespace bertrand::training {

enum class ExistingRun { refuse, resume, overwrite };

/// Holds a run directory for one process as long as it lives.
class RunDirectory {
 public:
  /// Creates the directory where needed, durably. Throws Error(Failure::usage) if it holds a run and that is not asked
  /// for, if it holds a model that no run wrote (never overwritten), or if another live process writes to it.
  RunDirectory(const std::filesystem::path& path, ExistingRun existing,
               formats::Files& files = formats::Files::system());
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  void admit(ExistingRun existing, formats::Files& files) const;

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace bertrand::training
