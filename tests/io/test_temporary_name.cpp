#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "io/error.h"
#include "io/file_replacer.h"
#include "io/machine.h"
#include "io/staged_directory.h"
#include "io/temporary_name.h"
#include "support/file_limit.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand::io;
namespace fs = std::filesystem;
using support::read_text;
using support::write_text;

namespace {

/// A process that does `body`, which says when it is ready, and then waits until it is killed or told to go on.
class Other {
 public:
  template <class Body>
  explicit Other(const Body& body) {
    REQUIRE(::pipe(ready_) == 0);
    REQUIRE(::pipe(go_on_) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      char byte = 0;
      ::close(go_on_[1]);
      body([&] { (void)!::write(ready_[1], "r", 1), (void)!::read(go_on_[0], &byte, 1); });
      ::_exit(0);
    }
    ::close(go_on_[0]);
    ::close(ready_[1]);
    char byte = 0;
    REQUIRE(::read(ready_[0], &byte, 1) == 1);
  }
  ~Other() { end(); }
  pid_t process() const { return process_; }
  void kill() {
    ::kill(process_, SIGKILL);
    end();
  }
  void end() {
    if (process_ <= 0) return;
    ::close(go_on_[1]);
    ::close(ready_[0]);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  int ready_[2], go_on_[2];
  pid_t process_ = 0;
};

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

/// Whether `body` is refused for want of descriptors by a process that may have `more` than it has.
template <class Body>
bool is_refused_with(int more, const Body& body) {
  const support::FileLimit limit(more);
  return support::refusal(bertrand::Failure::io, body).ends_with(": open: Too many open files");
}

constexpr int kNobody = 4194305;  // above the highest number that Linux gives to a process

bool has_no_locks = false;    // whether the file system has none
int interruptions = 0;        // of calls of flock, by a signal
bool numbers_differ = false;  // whether a file has another inode number by its name than when it is open

}  // namespace

/// In place of those of the system.
extern "C" int lstat(const char* path, struct stat* out) noexcept {
  const int result = ::fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
  if (numbers_differ) ++out->st_ino;
  return result;
}

extern "C" int flock(int descriptor, int operation) noexcept {
  if (has_no_locks || interruptions > 0) {
    errno = has_no_locks ? ENOLCK : EINTR;
    interruptions -= !has_no_locks;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

TEST_CASE("what a killed process left is removed by the next one that writes the same file or directory") {
  const support::TemporaryDirectory directory;
  for (const bool file : {true, false}) {
    CAPTURE(file);
    Other killed([&](const auto& wait) {
      if (file) {
        FileReplacer out(Files::system(), directory / "out");
        out.write("half");
        wait();
      } else {
        StagedDirectory out(Files::system(), directory / "out", "output");
        write_text(out.path() / "part", "half");
        wait();
      }
    });
    const std::string left = fmt::format("out.tmp-{}-{}", host_name(), killed.process());
    killed.kill();
    CHECK(names_in(directory / "") == std::set<std::string>{left});
    if (file) replace_file(Files::system(), directory / "out", "whole");
    else StagedDirectory(Files::system(), directory / "out", "output").publish();
    CHECK(names_in(directory / "") == std::set<std::string>{"out"});
    fs::remove_all(directory / "out");
  }
}

TEST_CASE("what a living process writes stays, even under the number of a dead one, and appears when it is whole") {
  const support::TemporaryDirectory directory;
  fs::path staged, renamed = (directory / "out").string() + fmt::format(".tmp-{}-{}", host_name(), kNobody);
  Other living([&](const auto& wait) {
    FileReplacer out(Files::system(), directory / "out");
    out.write("later");
    out.finish();
    wait();
    out.publish();
  });
  staged = (directory / "out").string() + fmt::format(".tmp-{}-{}", host_name(), living.process());
  fs::rename(staged, renamed);
  replace_file(Files::system(), directory / "out", "sooner");
  CHECK(names_in(directory / "") == std::set<std::string>{"out", renamed.filename()});
  fs::rename(renamed, staged);
  replace_file(Files::system(), directory / "out", "sooner");
  CHECK(names_in(directory / "") == std::set<std::string>{"out", staged.filename()});
  living.end();
  CHECK(names_in(directory / "") == std::set<std::string>{"out"});
  CHECK(read_text(directory / "out") == "later");
}

TEST_CASE("a file system that numbers a name and an open file differently is written to without locks") {
  const support::TemporaryDirectory directory;
  numbers_differ = true;
  replace_file(Files::system(), directory / "out", "whole");
  StagedDirectory(Files::system(), directory / "folder", "output").publish();
  numbers_differ = false;
  CHECK(names_in(directory / "") == std::set<std::string>{"folder", "out"});
  CHECK(read_text(directory / "out") == "whole");
  numbers_differ = true;
  const TemporaryName name(directory / "out", [](const fs::path& path) { write_text(path, "whole"); });
  numbers_differ = false;
  const Descriptor other(::open(name.path().c_str(), O_RDWR | O_CLOEXEC));
  CHECK(::flock(other.number(), LOCK_EX | LOCK_NB) == 0);
}

TEST_CASE("without locks what has the number of this process is written anew, and what has another is left") {
  const support::TemporaryDirectory directory;
  const std::string own = fmt::format("out.tmp-{}-{}", host_name(), ::getpid());
  const std::string other = fmt::format("out.tmp-{}-{}", host_name(), kNobody);
  for (const std::string& name : {own, other}) write_text(directory / name, "left");
  has_no_locks = true;
  replace_file(Files::system(), directory / "out", "whole");
  has_no_locks = false;
  CHECK(names_in(directory / "") == std::set<std::string>{"out", other});
  CHECK(read_text(directory / "out") == "whole");
}

TEST_CASE("what another process removes before it is locked is made anew, and a signal does not end the wait for it") {
  const support::TemporaryDirectory directory;
  int made = 0;
  interruptions = 1;
  const TemporaryName name(directory / "out", [&](const fs::path& path) {
    write_text(path, "whole");
    if (++made == 1) fs::remove(path);
  });
  CHECK(interruptions == 0);
  CHECK(made == 2);
  CHECK(read_text(name.path()) == "whole");
  const Descriptor other(::open(name.path().c_str(), O_RDWR | O_CLOEXEC));
  CHECK((::flock(other.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK));
}

TEST_CASE("what is made and cannot be opened is written without a lock") {
  const support::TemporaryDirectory directory;
  int made = 0;
  const TemporaryName name(directory / "out", [&](const fs::path& path) {
    ++made;
    fs::create_symlink("nothing", path);
  });
  CHECK(made == 1);
  CHECK(fs::is_symlink(name.path()));
}

TEST_CASE("a directory that another one of this process's number fills is neither removed nor filled") {
  const support::TemporaryDirectory directory;
  const fs::path staged = temporary_name(directory / "out");
  fs::create_directory(staged);
  write_text(staged / "part", "of another");
  const Descriptor other(::open(staged.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(other.number(), LOCK_EX) == 0);
  CHECK(support::refusal(bertrand::Failure::io, [&] {
          StagedDirectory(Files::system(), directory / "out", "output");
        }).ends_with(": mkdir: File exists"));
  CHECK(read_text(staged / "part") == "of another");
}

TEST_CASE("a process that has no descriptor left to lock what it made leaves nothing of it") {
  const support::TemporaryDirectory directory;
  CHECK(
      is_refused_with(1, [&] { const FileReplacer out(Files::system(), directory / "out"); }));  // for the file itself
  CHECK(names_in(directory / "").empty());
}

TEST_CASE("a process that has no descriptor left to see whether another one writes a file does not remove it") {
  const support::TemporaryDirectory directory;
  write_text(directory / "part", "of another");
  CHECK(is_refused_with(0, [&] { remove_unless_written(Files::system(), directory / "part"); }));
  CHECK(read_text(directory / "part") == "of another");
  remove_unless_written(Files::system(), directory / "part");
  CHECK(names_in(directory / "").empty());
}

TEST_CASE("what a dead process left is removed even if another process has its number, and nothing else is") {
  const support::TemporaryDirectory directory;
  const std::string host = host_name();
  for (const char* number : {"-1", "-90"}) write_text(directory / ("out.tmp-" + host + number), "left");
  write_text(directory / fmt::format("out.tmp-{}-{}", host, ::getpid()), "left");
  const std::set<std::string> others = {"out.tmp-another" + host + "-4194305",
                                        "out.tmp-" + host + "-x-4194305",
                                        "out.tmp-" + host + "-4194305-notes",
                                        "out.tmp-" + host + "-",
                                        "out.tmp-4194305",
                                        "out2.tmp-" + host + "-4194305",
                                        "my.out.tmp-" + host + "-4194305"};
  for (const std::string& name : others) write_text(directory / name, "of another");
  write_text(directory / "precious", "ours");
  fs::create_symlink(directory / "precious", directory / ("out.tmp-" + host + "-4194306"));
  replace_file(Files::system(), directory / "out", "new");
  std::set<std::string> expected = others;
  expected.insert({"out", "precious", "out.tmp-" + host + "-4194306"});
  CHECK(names_in(directory / "") == expected);
  CHECK(read_text(directory / "precious") == "ours");
}
