// Where an export goes.
#pragma once
#include <filesystem>

namespace bertrand::exporting {

/// A directory that appears whole, and the one in it that the files are written to.
struct Place {
  std::filesystem::path directory;
  std::filesystem::path inside = {};  ///< empty: `directory` itself

  /// Where the files go in the directory `whole`, whatever its name is for now.
  std::filesystem::path files_in(const std::filesystem::path& whole) const {
    return inside.empty() ? whole : whole / inside;
  }
};

/// The next version below `base`, as TensorFlow Serving looks for versions: directories with numbers for names. It is 1
/// in a base that appears with it; a base that is there already gets one more than its highest number. Throws
/// Error(Failure::usage) if `base` is itself a model and no directory of versions.
Place next_version(const std::filesystem::path& base);

}  // namespace bertrand::exporting
