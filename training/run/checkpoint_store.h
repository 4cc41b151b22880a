// Checkpoints that are either wholly there or not there at all, and that know when they have rotted.
//
// Saving: checkpoint-1200.tmp-<pid>/ is filled, every file made durable; MANIFEST.json (bytes and CRC-32C of each file
// and tensor) comes last; then the directory is made durable, renamed to checkpoint-1200, and its parent made durable.
// Only then are older ones removed. "Newest" is computed, never stored: the highest step whose manifest verifies.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/files.h"

namespace bertrand::training {

/// CRC-32C of tensors by "file/tensor", which the writer of a checkpoint hands over for the manifest.
using TensorChecksums = std::map<std::string, std::uint32_t>;

class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path directory, io::Files& files = io::Files::system())
      : directory_(std::move(directory)), files_(files) {}

  /// `fill` writes the files into the directory it is given. Throws Error(Failure::io) naming the call that failed and
  /// the last checkpoint. What was saved before is not touched.
  void save(std::int64_t step, std::size_t bytes_needed,
            const std::function<TensorChecksums(const std::filesystem::path&)>& fill);
  /// Removes damaged checkpoints, and all but the newest `keep` of the others. One that cannot be removed stays, with
  /// a warning. A directory of that name that another program wrote stays.
  void remove_old(int keep);
  /// Removes all of this program's checkpoints. One that cannot be removed stays, with all that are newer, and
  /// a warning.
  void remove_all();

  struct Found {
    std::int64_t step = 0;
    std::filesystem::path directory;
  };
  /// This program's checkpoints, newest first, whole or not.
  std::vector<Found> list() const;
  /// The newest checkpoint that verifies. Those that do not are named, with the reason, in `skipped`, and removed by
  /// remove_old(). Throws as verify_checkpoint() does.
  std::optional<Found> newest(std::vector<std::string>& skipped);

 private:
  void stage_and_rename(const std::filesystem::path& final_path, std::int64_t step,
                        const std::function<TensorChecksums(const std::filesystem::path&)>& fill);

  std::filesystem::path directory_;
  io::Files& files_;
  std::set<std::filesystem::path> damaged_;
};

/// "" if every file of a checkpoint is as its manifest says, else what is wrong. Throws Error(Failure::io) if one
/// cannot be read, and Error(Failure::model) if another version wrote it: neither is damaged.
std::string verify_checkpoint(const std::filesystem::path& checkpoint);

/// Throws Error(Failure::io) if the disk of `directory` has less room than that.
void check_space(const std::filesystem::path& directory, std::size_t needed);

}  // namespace bertrand::training
