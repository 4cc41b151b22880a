#include "io/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace bertrand::io {

void Descriptor::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

Descriptor open_to_read(const std::filesystem::path& file) {
  return Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

ssize_t read_at(int descriptor, char* bytes, std::size_t size, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(descriptor, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return count;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

bool is_named(const Descriptor& open, const std::filesystem::path& path) {
  struct stat own {
  }, named{};
  return ::fstat(open.number(), &own) == 0 && ::lstat(path.c_str(), &named) == 0 && own.st_ino == named.st_ino &&
         own.st_dev == named.st_dev;
}

bool is_of_another_user(const std::filesystem::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid() && status.st_uid != 0;
}

}  // namespace bertrand::io
