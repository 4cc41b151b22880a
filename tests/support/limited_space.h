// A process that may have little more memory.
#pragma once
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace support {

/// Address space of this process in bytes.
inline std::size_t mapped() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Lets this process have so many bytes of address space beside those that it has, while it lives.
class LimitedSpace {
 public:
  explicit LimitedSpace(std::size_t more) {
    REQUIRE(getrlimit(RLIMIT_AS, &before_) == 0);
    rlimit limited = before_;
    limited.rlim_cur = mapped() + more;
    REQUIRE(setrlimit(RLIMIT_AS, &limited) == 0);
  }
  ~LimitedSpace() { setrlimit(RLIMIT_AS, &before_); }
  LimitedSpace(const LimitedSpace&) = delete;
  LimitedSpace& operator=(const LimitedSpace&) = delete;

 private:
  rlimit before_{};
};

}  // namespace support
