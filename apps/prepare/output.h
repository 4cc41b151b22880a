// Files that the commands of prepare write.
#pragma once
#include <filesystem>

namespace bertrand::prepare {

/// Throws Error(Failure::usage) if writing there would lose a file of a run, or without `overwrite` any file. A link,
/// a pipe or a device is no such file: it is written through.
void check_output(const std::filesystem::path& output, bool overwrite);

}  // namespace bertrand::prepare
