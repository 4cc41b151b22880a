#include "io/spillable.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "io/machine.h"

namespace bertrand::io {

bool SpillPlace::is_due(std::size_t bytes, bool has_file) const {
  constexpr std::size_t kPart = std::size_t{1} << 20;  // once there is a file, no more than this is held
  if (directory.empty() || bytes < (has_file ? std::min(held_bytes, kPart) : held_bytes)) return false;
  std::error_code ignored;
  return has_file || std::filesystem::is_directory(directory, ignored);
}

SpillFile::SpillFile(const SpillPlace& place)
    : file_(std::make_unique<UnnamedFile>(*place.files,
                                          place.directory / fmt::format("rows.tmp-{}-{}", host_name(), ::getpid()))) {}

}  // namespace bertrand::io
