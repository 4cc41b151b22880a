// Locks of a run directory that the file system refuses or loses.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "support/program.h"
#include "support/refusal.h"
#include "training/run/run_directory.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

int error_of_locks = 0;  // 0: none
std::string lost;        // a file that goes as soon as something is locked
int losses = 0;          // how often it still does

}  // namespace

/// In the place of the system's.
extern "C" int flock(int descriptor, int operation) noexcept {
  if (error_of_locks != 0) {
    errno = error_of_locks;
    return -1;
  }
  if (losses > 0 && ::unlink(lost.c_str()) == 0) --losses;
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

TEST_CASE("a file system without locks is refused with the way out, and another error of a lock as it is") {
  const support::TemporaryDirectory parent;
  const auto refusal = [&](int error) {
    error_of_locks = error;
    const std::string line =
        support::refusal(Failure::io, [&] { RunDirectory(parent / "run", ExistingRun::refuse, {}); });
    error_of_locks = 0;
    return line;
  };
  const std::string lock = (parent / "run/.lock").string(),
                    hint = "; hint: name an --output on a file system with locks";
  CHECK(refusal(ENOSYS) == lock + ": flock: Function not implemented" + hint);
  CHECK(refusal(EOPNOTSUPP) == lock + ": flock: Operation not supported" + hint);
  CHECK(refusal(ENOLCK) == lock + ": flock: No locks available" + hint);
  CHECK(refusal(EIO) == lock + ": flock: Input/output error");
}

TEST_CASE(
    "a lock file that is another one as often as it is locked ends in a refusal, and one that comes back does not") {
  const support::TemporaryDirectory parent;
  lost = parent / "run/.lock";
  losses = 100;
  const std::string line =
      support::refusal(Failure::io, [&] { RunDirectory(parent / "run", ExistingRun::refuse, {}); });
  CHECK(line == lost +
                    ": expected the file that this process has locked, got another or none, 100 times; hint: name "
                    "another --output");
  CHECK(losses == 0);
  losses = 99;
  CHECK(RunDirectory(parent / "run", ExistingRun::refuse, {}).path() == parent / "run");
  CHECK(losses == 0);
}
