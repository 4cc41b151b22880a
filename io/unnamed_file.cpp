#include "io/unnamed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace bertrand::io {

UnnamedFile::UnnamedFile(Files& files, const std::filesystem::path& file)
    : files_(files), file_(file), write_descriptor_(files.create_new(file)) {
  read_descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const int error = errno;
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (read_descriptor_ >= 0) return;
  ::close(write_descriptor_);
  refuse_call(file, "open", error);
}

UnnamedFile::~UnnamedFile() {
  ::close(write_descriptor_);
  ::close(read_descriptor_);
}

std::filesystem::path UnnamedFile::name_to_map() const { return fmt::format("/proc/self/fd/{}", read_descriptor_); }

}  // namespace bertrand::io
