// What a run is recognised by: in all its processes when it begins, and when it is resumed.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "training/run/run_state.h"
#include "training/run/settings.h"

namespace bertrand::distributed {
class Collective;
}

namespace bertrand::training {

/// What identifies a run beside the common settings. A file whose checksum is known is not read for it.
struct RunIdentity {
  using File = std::variant<std::filesystem::path, InputFile>;
  /// Further (flag, value) that decide the result.
  std::vector<std::pair<std::string, std::string>> settings;
  /// Files that decide the result: a run is not resumed when one of them has changed.
  std::vector<File> inputs;
  /// Files that all processes must have alike, but that may be others when it is resumed.
  std::vector<File> other_files;
};

/// Throws Error(Failure::usage) unless all processes have the same version, kernels, devices and flags that say what to
/// do now. That comes before they read: how they do so together depends on it.
void agree_on_start(distributed::Collective& processes, const Settings& settings);

/// Reads the inputs, and returns what the run must be given again to be resumed. If `processes` is not null, throws
/// Error(Failure::usage) unless all of them have the same flags that decide the result, and the same files.
Conditions agree_on_run(distributed::Collective* processes, const Settings& settings, const RunIdentity& identity);

}  // namespace bertrand::training
