// What the name of a file or directory says, whether it is there or not.
#pragma once
#include <filesystem>

namespace bertrand::io {

/// The directory in which it lies: "." of a name alone.
std::filesystem::path parent_of(const std::filesystem::path& path);
/// A path that ends with a slash has no name of its own: without the slash, the directory has.
std::filesystem::path without_slash(const std::filesystem::path& path);

}  // namespace bertrand::io
