// Reads and writes that a signal interrupts, that do only a part, or that the system refuses.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io/byte_source.h"
#include "io/crc32c.h"
#include "io/descriptor.h"
#include "io/file_checksum.h"
#include "io/files.h"
#include "io/tfrecord.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;
using support::refusal;
using support::write_text;

namespace {

/// What happens to the reads and writes of this thread.
struct Calls {
  int interrupted = 0;      ///< so many fail first, because a signal came
  std::size_t most = 0;     ///< bytes that one call takes or gives; 0: any
  int error = 0;            ///< of all others; 0: none
  bool are_at_end = false;  ///< the others read nothing: the file has become shorter
};
thread_local Calls calls;

/// Does a call of the system as `calls` says.
template <class Call>
ssize_t disturbed(std::size_t size, const Call& call) {
  if (calls.interrupted > 0) {
    --calls.interrupted;
    errno = EINTR;
    return -1;
  }
  if (calls.error != 0) {
    errno = calls.error;
    return -1;
  }
  if (calls.are_at_end) return 0;
  return call(calls.most == 0 ? size : std::min(size, calls.most));
}

/// Calls `body` with reads and writes so disturbed.
template <class Body>
auto with(const Calls& disturbances, const Body& body) {
  struct Undisturbed {
    ~Undisturbed() { calls = {}; }
  } const after;
  calls = disturbances;
  return body();
}

}  // namespace

/// In place of those of the system.
extern "C" ssize_t read(int descriptor, void* bytes, std::size_t size) {
  return disturbed(size, [&](std::size_t most) { return ::syscall(SYS_read, descriptor, bytes, most); });
}
extern "C" ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  return disturbed(size, [&](std::size_t most) { return ::syscall(SYS_write, descriptor, bytes, most); });
}
extern "C" ssize_t pread(int descriptor, void* bytes, std::size_t size, off_t offset) {
  return disturbed(size, [&](std::size_t most) { return ::syscall(SYS_pread64, descriptor, bytes, most, offset); });
}
extern "C" int fsync(int descriptor) {
  return static_cast<int>(disturbed(0, [&](std::size_t) { return ::syscall(SYS_fsync, descriptor); }));
}

TEST_CASE("a write that fails is an error, and so is a file that is not made durable, unless it never can be") {
  const support::TemporaryDirectory directory;
  write_text(directory / "f", "");
  const auto refused = [&](int error, const auto& body) {
    return with({.error = error}, [&] { return refusal(Failure::io, body); });
  };
  const auto write = [&] { FileWriter(Files::system(), directory / "f").write("text"); };
  const auto sync = [&] { FileWriter(Files::system(), directory / "f").finish(); };
  const auto sync_directory = [&] { Files::system().sync_directory(directory / "."); };
  CHECK(refused(EIO, write).ends_with("f: write: Input/output error"));
  CHECK(refused(EIO, sync).ends_with("f: fsync: Input/output error"));
  CHECK(refused(EIO, sync_directory).ends_with(".: fsync: Input/output error"));
  CHECK(refused(EINVAL, sync) == "");
  CHECK(refused(EINVAL, sync_directory) == "");
}

TEST_CASE("bytes of a file are read up to those asked for, and those before its end if it has fewer") {
  const support::TemporaryDirectory directory;
  write_text(directory / "f", "0123456789");
  const Descriptor file = open_to_read(directory / "f");
  with({.most = 3}, [&] {
    std::string bytes(12, '.');
    CHECK(read_at(file.number(), bytes.data(), 4, 1) == 4);
    CHECK(bytes == "1234........");
    CHECK(read_at(file.number(), bytes.data(), 12, 6) == 4);
    CHECK(bytes == "6789........");
  });
}

TEST_CASE("calls that a signal interrupts or that do only a part are made again until all is read or written") {
  const support::TemporaryDirectory directory;
  const std::string text = "a text of more bytes than a call gives";
  std::string file;
  append_record(file, text);
  with({.interrupted = 2, .most = 5}, [&] {
    write_file(Files::system(), directory / "f", file);
    CHECK(calls.interrupted == 0);  // so it was this program's write() that was called
  });
  CHECK(support::read_text(directory / "f") == file);
  with({.interrupted = 2, .most = 5}, [&] {
    std::string all(file.size() + 10, '\0');
    ByteSource source(directory / "f", "text");
    calls.interrupted = 2;
    all.resize(source.read(all.data(), all.size()));
    CHECK(all == file);
  });
  with({.interrupted = 2, .most = 5}, [&] { CHECK(crc32c_of_sample(directory / "f") == crc32c(file)); });
  with({.interrupted = 2, .most = 5},
       [&] { CHECK(read_record_at(directory / "f", 0, text.size(), crc32c(text)) == text); });
}

TEST_CASE("an fsync() that a signal interrupts is made again, of a file and of a directory") {
  const support::TemporaryDirectory directory;
  FileWriter file(Files::system(), directory / "f");
  with({.interrupted = 2}, [&] {
    file.finish();
    CHECK(calls.interrupted == 0);
    calls.interrupted = 2;
    Files::system().sync_directory(directory / ".");
    CHECK(calls.interrupted == 0);
  });
}

TEST_CASE("a read that the system refuses, or a file that becomes shorter while it is read, is an error at once") {
  const support::TemporaryDirectory directory;
  write_text(directory / "f", "a text that is no record");
  const auto refused = [&](const Calls& disturbances, Failure failure, const auto& body) {
    return with(disturbances, [&] { return refusal(failure, body); });
  };
  const auto sample = [&] { crc32c_of_sample(directory / "f"); };
  const auto record = [&] { read_record_at(directory / "f", 0, 8, 0); };
  const auto source = [&] { ByteSource(directory / "f", "text"); };
  const Calls broken{.error = EIO};
  CHECK(refused(broken, Failure::io, sample).ends_with("f: read: Input/output error"));
  CHECK(refused(broken, Failure::io, record).ends_with("f@0: read: Input/output error"));
  CHECK(refused(broken, Failure::io, source).ends_with("f: read: Input/output error"));
  const Calls shorter{.interrupted = 1, .are_at_end = true};
  CHECK(refused(shorter, Failure::io, sample).find("f: read: expected 24 more bytes") != std::string::npos);
  CHECK_FALSE(refused(shorter, Failure::input, record).empty());
  CHECK(refusal(Failure::io, [&] {
          read_record_at(directory / "none", 0, 8, 0);
        }).ends_with("none: open: No such file or directory"));
}
