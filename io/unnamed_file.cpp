#include "io/unnamed_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <random>

namespace bertrand::io {
namespace {

/// A process that was killed before it removed the name may have left `file`, and the next one in its container has the
/// same number; threads, and processes of other hosts, may make theirs at the same moment.
std::filesystem::path unlike_others(const std::filesystem::path& file) {
  std::random_device random;
  return fmt::format("{}-{:08x}{:08x}", file.string(), random(), random());
}

}  // namespace

UnnamedFile::UnnamedFile(Files& files, const std::filesystem::path& file)
    : files_(files),
      file_(unlike_others(file)),
      to_write_(files.open(file_, Opening::create_new)),
      to_read_(open_to_read(file_)) {
  const int error = errno;
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
  if (!to_read_) refuse_call(file_, "open", error);
}

std::filesystem::path UnnamedFile::name_to_map() const { return fmt::format("/proc/self/fd/{}", descriptor()); }

}  // namespace bertrand::io
