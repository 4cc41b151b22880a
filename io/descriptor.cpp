#include "io/descriptor.h"

#include <sys/stat.h>
#include <unistd.h>

namespace bertrand::io {

void Descriptor::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

bool is_named(const Descriptor& open, const std::filesystem::path& path) {
  struct stat own {
  }, named{};
  return ::fstat(open.number(), &own) == 0 && ::lstat(path.c_str(), &named) == 0 && own.st_ino == named.st_ino &&
         own.st_dev == named.st_dev;
}

}  // namespace bertrand::io
