// A process that may open few more files.
#pragma once
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace support {

/// As long as it lives this process may open `more` files beside those that are open.
class FileLimit {
 public:
  explicit FileLimit(int more) {
    const int next = dup(STDIN_FILENO);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit less{.rlim_cur = static_cast<rlim_t>(next + more), .rlim_max = before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &less) == 0);
  }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace support
