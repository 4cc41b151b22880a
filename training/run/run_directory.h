// The run directory: who may write into it, and what it begins with.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "io/descriptor.h"
#include "io/files.h"
#include "training/run/run_files.h"
#include "training/run/settings.h"

namespace bertrand::training {

enum class ExistingRun { refuse, resume, overwrite };

/// Holds a run directory for one process as long as it lives.
class RunDirectory {
 public:
  /// Creates the directory if it is not there, durably. Throws Error(Failure::usage) if it holds a run and that is not
  /// asked for, if it holds a model or checkpoint but nothing that a run of this program wrote (such a directory is
  /// never written to), or if another live process writes to it.
  RunDirectory(const std::filesystem::path& path, ExistingRun existing, ProgramFiles names = {},
               io::Files& files = io::Files::system());
  /// Directories that were created for it and are still empty go away again.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  /// Throws Error(Failure::usage) if clear() would remove one of these files or directories, or what is in one.
  void require_kept(const std::vector<std::filesystem::path>& inputs) const;
  /// Removes the run that is to be overwritten, and nothing else: called when there is something to put in its place.
  void clear();
  /// Removes what killed runs left half-written, on whichever host: while this process has the lock, nobody else writes
  /// here for a run. A page that another program is writing stays.
  void remove_leftovers();
  /// Throws Error(Failure::usage) if a run came to something here: one that begins anew would replace it. A run without
  /// a checkpoint that did not come to its end came to nothing, though it may have published a model: begun anew, it
  /// makes the same steps. One that ended and kept its model alone came to its end, but makes no further steps.
  void refuse_results() const;

  const std::filesystem::path& path() const { return path_; }
  const ProgramFiles& names() const { return names_; }
  /// What a run writes into its directory with: no file is created, renamed or removed there if the name no longer
  /// leads to the directory that was claimed. Somebody moved or removed it then, and another run may have begun under
  /// its name: Error(Failure::usage).
  io::Files& files() const { return *held_files_; }

 private:
  class HeldFiles;
  void require_held() const;
  void make_directories(const std::filesystem::path& path);
  void find_earlier_run(ExistingRun existing);
  void let_go();

  std::filesystem::path path_;
  const ProgramFiles names_;
  io::Files& files_;
  const std::unique_ptr<io::Files> held_files_;
  io::Descriptor lock_;
  std::vector<std::filesystem::path> created_;  // outermost first
  std::vector<std::filesystem::path> earlier_;  // what is to be overwritten
};

/// What a replica writes with: only the first has a directory, and only the first writes.
inline io::Files& files_of(const RunDirectory* directory) {
  return directory ? directory->files() : io::Files::system();
}

/// The directory of --output, as --resume and --overwrite say, for a run that reads `inputs` and writes files of these
/// names; none under --plan, nor for another rehearsal without --output.
std::unique_ptr<RunDirectory> claim_output(const Settings& settings, const std::vector<std::filesystem::path>& inputs,
                                           const ProgramFiles& names);

}  // namespace bertrand::training
