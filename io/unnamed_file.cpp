#include "io/unnamed_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

namespace bertrand::io {

UnnamedFile::UnnamedFile(Files& files, const std::filesystem::path& file)
    : files_(files), file_(file), to_write_(files.create_new(file)), to_read_(open_to_read(file)) {
  const int error = errno;
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (!to_read_) refuse_call(file, "open", error);
}

std::filesystem::path UnnamedFile::name_to_map() const { return fmt::format("/proc/self/fd/{}", descriptor()); }

}  // namespace bertrand::io
