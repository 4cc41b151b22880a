#include "io/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/crc32c.h"
#include "io/descriptor.h"
#include "io/file_replacer.h"
#include "support/faulty_files.h"
#include "support/file_limit.h"
#include "support/limited_space.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;
using support::read_text;
using support::write_text;
namespace fs = std::filesystem;

namespace {

/// What `body` fails with, which must be an error of the operating system.
template <class Body>
std::string io_error(const Body& body) {
  return support::refusal(Failure::io, [&] { body(); });
}

}  // namespace

TEST_CASE("a file is written in pieces, and appended to later") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "f";
  {
    FileWriter out(Files::system(), file);
    out.write("some ");
    out.write(std::as_bytes(std::span("bytes", 5)));
    CHECK(out.path() == file);
    out.finish();
  }
  CHECK(read_file(file) == "some bytes");
  FileWriter(Files::system(), file, Opening::append).write(" more");
  CHECK(read_file(file) == "some bytes more");
  FileWriter(Files::system(), file).write("less");
  CHECK(read_file(file) == "less");
}

TEST_CASE("a file of one byte is mapped, and an empty file is read as nothing") {
  const support::TemporaryDirectory directory;
  write_text(directory / "f", "");
  CHECK(read_file(directory / "f") == "");
  CHECK(MappedFile(directory / "f").bytes().empty());
  write_text(directory / "one", "1");
  CHECK(MappedFile(directory / "one").bytes().size() == 1);
}

TEST_CASE("a file for which a process has no memory left is refused with its size") {
  const support::TemporaryDirectory directory;
  write_text(directory / "f", "");
  const std::uintmax_t size = std::uintmax_t{1} << 34;  // which takes no room on the disk
  std::filesystem::resize_file(directory / "f", size);
  const support::LimitedSpace limited(std::size_t{1} << 30);
  CHECK(support::refusal(Failure::memory, [&] { MappedFile(directory / "f"); }) ==
        fmt::format("{}: read: out of memory: needed {} bytes; hint: ulimit -v limits what a program may have",
                    (directory / "f").string(), size));
}

TEST_CASE("what the system refuses names the path, the call and the reason") {
  const support::TemporaryDirectory directory;
  const fs::path none = directory / "none", here = directory / "";
  const std::string absent = ": No such file or directory";
  CHECK(io_error([&] { FileWriter(Files::system(), none / "f"); }) == (none / "f").string() + ": open" + absent);
  CHECK(io_error([&] { Files::system().rename(none, here / "x"); }) ==
        (here / "x").string() + ": rename from " + none.string() + absent);
  CHECK(io_error([&] { Files::system().sync_directory(none); }) == none.string() + ": open" + absent);
  write_text(directory / "file", "");
  const fs::path under = directory / "file/x";
  CHECK(io_error([&] { Files::system().make_directory(under); }) == under.string() + ": mkdir: Not a directory");
  CHECK(io_error([&] { Files::system().cut(none, 0); }) == none.string() + ": truncate" + absent);
  CHECK(io_error([&] { Files::system().remove_all("/proc/self/status"); }).starts_with("/proc/self/status: remove: "));
  Files::system().remove_all(none);  // what is not there is removed already
}

TEST_CASE("what is no regular file is bad input, to be read whole, and so is what is not there") {
  const support::TemporaryDirectory directory;
  write_text(directory / "file", "");
  const auto refusal = [](const fs::path& file) { return support::refusal(Failure::input, [&] { read_file(file); }); };
  const fs::path none = directory / "none", under = directory / "file/x", here = directory / "";
  CHECK(refusal(none) == none.string() + ": open: No such file or directory");
  CHECK(refusal(under) ==
        under.string() + ": open: Not a directory; hint: " + (directory / "file").string() + " is no directory");
  CHECK(refusal(here) == here.string() + ": expected a regular file, got a directory");
  CHECK(refusal("/dev/null") == "/dev/null: expected a regular file, got a pipe or device; hint: put it into a file");
}

TEST_CASE("a full disk says how many bytes were to be written and how many there is room for") {
  const std::string error = io_error([] {
    FileWriter out(Files::system(), "/dev/full");
    out.write("12345");
  });
  CHECK(error.starts_with("/dev/full: write: No space left on device: needed 5 bytes, available "));
}

TEST_CASE("whatever call fails, no output file and no other file is left") {
  for (int failing = 1;; ++failing) {
    const support::TemporaryDirectory directory;
    support::FailingFiles files(failing, "No space left on device");
    try {
      FileReplacer out(files, directory / "r");
      out.write("text");
      out.publish();
      CHECK(files.calls() < failing);  // nothing failed
      break;
    } catch (const Error& error) {
      CHECK(error.failure() == Failure::io);
      if (fs::exists(directory / "r")) continue;  // after the rename only the directory's fsync can fail
      CHECK(fs::is_empty((directory / "r").parent_path()));
    }
  }
}

TEST_CASE("a file that is not finished leaves nothing, and what is no regular file is written as it is") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "f";
  FileReplacer(Files::system(), file).write("half");
  CHECK(fs::is_empty(directory / ""));

  const fs::path pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  replace_file(Files::system(), pipe, "through");
  char got[16] = {};
  CHECK(::read(reader, got, sizeof got) == 7);
  CHECK(std::string(got) == "through");
  CHECK(fs::is_fifo(pipe));
  ::close(reader);
  CHECK(support::refusal(Failure::input, [&] { MappedFile{pipe}; }).find("got a pipe or device") != std::string::npos);

  write_text(file, "old");
  fs::create_symlink(file, directory / "link");
  replace_file(Files::system(), directory / "link", "new");
  CHECK(read_text(file) == "new");
  CHECK(fs::is_symlink(directory / "link"));
}

TEST_CASE("a file is replaced in one step: whichever call fails, it is the old one or the new one and nothing beside") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "f";
  int failures = 0;
  for (int failing = 0, calls = 1; failing <= calls; ++failing) {
    write_text(file, "old");
    support::FailingFiles files(failing, "Input/output error");
    const std::string error = io_error([&] { replace_file(files, file, "new"); });
    CAPTURE(failing);
    CHECK((failing == 0) == error.empty());
    const bool renamed = failing == 0 || failing == calls;  // only making the directory durable comes after it
    CHECK(read_text(file) == (renamed ? "new" : "old"));
    CHECK(std::distance(fs::directory_iterator(directory / ""), {}) == 1);
    failures += !error.empty();
    if (failing == 0) calls = files.calls();
  }
  CHECK(failures == 6);  // open, write, fsync, close, rename, fsync of the directory
}

TEST_CASE("a file that is replaced leaves what comes to have its other name") {
  const support::TemporaryDirectory directory;
  const fs::path staged = temporary_name(directory / "f");
  {
    FileReplacer out(Files::system(), directory / "f");
    out.write("new");
    out.publish();
    write_text(staged, "of another");
  }
  CHECK(read_text(staged) == "of another");
}

TEST_CASE("files that were read and written take no descriptors, and they may have the number of standard input") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "f";
  const support::FileLimit few(4);
  for (int i = 0; i < 9; ++i) {
    replace_file(Files::system(), file, "text");
    FileWriter(Files::system(), directory / "half").write("half");
    CHECK(read_file(file) == "text");
    CHECK(open_to_read(file).number() > STDIN_FILENO);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const auto is_free = [] { return ::fcntl(STDIN_FILENO, F_GETFD) == -1; };
    ::close(STDIN_FILENO);
    write_file(Files::system(), file, "other text");
    Files::system().sync_directory(directory / "");
    FileWriter(Files::system(), directory / "half").write("half");
    if (!is_free()) ::_exit(1);
    const int number = open_to_read(file).number();
    if (number != STDIN_FILENO || !is_free()) ::_exit(2);
    ::_exit(read_file(file) == "other text" ? 0 : 3);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a link to a file is neither written, nor appended to, nor cut") {
  const support::TemporaryDirectory directory;
  const fs::path link = directory / "link";
  write_text(directory / "precious", "ours");
  fs::create_symlink(directory / "precious", link);
  const std::string reason = ": Too many levels of symbolic links";
  CHECK(io_error([&] { FileWriter(Files::system(), link, Opening::append); }) == link.string() + ": open" + reason);
  CHECK(io_error([&] { FileWriter(Files::system(), link); }) == link.string() + ": open" + reason);
  CHECK(io_error([&] { Files::system().cut(link, 1); }) == link.string() + ": truncate" + reason);
  CHECK(read_text(directory / "precious") == "ours");
  Files::system().cut(directory / "precious", 1);
  CHECK(read_text(directory / "precious") == "o");
}

TEST_CASE("a link that another user put where a file is replaced is replaced itself") {
  const support::TemporaryDirectory directory;
  write_text(directory / "precious", "ours");
  for (const char* target : {"precious", "nothing"}) {
    const fs::path link = directory / (std::string("to-") + target);
    fs::create_symlink(directory / target, link);
    CHECK(!is_of_another_user(link));
    CHECK(!is_replaceable(link));
    if (::lchown(link.c_str(), 54'321, 54'321) != 0) {
      MESSAGE("SKIPPED: only root can give a link away");
      return;
    }
    CHECK(is_of_another_user(link));
    replace_file(Files::system(), link, "new");
    CHECK(!fs::is_symlink(link));
    CHECK(read_text(link) == "new");
  }
  CHECK(read_text(directory / "precious") == "ours");
  CHECK(!fs::exists(directory / "nothing"));

  const fs::path null = directory / "null";
  fs::create_symlink("/dev/null", null);
  REQUIRE(::lchown(null.c_str(), 54'321, 54'321) == 0);
  replace_file(Files::system(), null, "away");
  CHECK(fs::is_symlink(null));
}

TEST_CASE("a link that stands where a temporary file is to be written is not followed") {
  const support::TemporaryDirectory directory;
  write_text(directory / "precious", "ours");
  const fs::path staged = temporary_name(directory / "out");
  fs::create_symlink(directory / "precious", staged);
  CHECK_THROWS_AS(FileWriter(Files::system(), staged, Opening::create_new), Error);
  replace_file(Files::system(), directory / "out", "new");
  CHECK(read_text(directory / "precious") == "ours");
  CHECK(read_text(directory / "out") == "new");
  CHECK_FALSE(fs::is_symlink(directory / "out"));
}
