#include "io/file_names.h"

namespace bertrand::io {

namespace fs = std::filesystem;

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

}  // namespace bertrand::io
