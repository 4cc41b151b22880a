// A directory that appears under its name when all of it is on the disk.
#include "io/staged_directory.h"

#include <doctest/doctest.h>

#include "support/faulty_files.h"
#include "support/program.h"

using namespace bertrand::io;
namespace fs = std::filesystem;

TEST_CASE("a directory that is not published leaves nothing, and one that is what comes to have its other name") {
  const support::TemporaryDirectory directory;
  {
    const StagedDirectory out(Files::system(), directory / "out", "output");
    write_file(Files::system(), out.path() / "part", "half");
  }
  CHECK(fs::is_empty(directory / ""));
  fs::path staged;
  {
    StagedDirectory out(Files::system(), directory / "out", "output");
    staged = out.path();
    out.publish();
    fs::create_directory(staged);
  }
  CHECK(fs::exists(staged));
}

TEST_CASE("whenever the power fails a directory is there whole or not at all, and it is there once it was published") {
  const support::TemporaryDirectory directory;
  support::RecordingFiles files(directory / "");
  StagedDirectory out(files, directory / "out", "output");
  write_file(files, out.path() / "part", "whole");
  out.publish();
  using support::Lost;
  for (std::size_t calls = 0; calls <= files.calls(); ++calls)
    for (const Lost lost : {Lost::nothing, Lost::data, Lost::half_of_data, Lost::everything}) {
      CAPTURE(calls);
      const support::TemporaryDirectory disk;
      files.restore(calls, lost, disk / "");
      const bool is_there = fs::exists(disk / "out");
      if (is_there) CHECK(fs::exists(disk / "out/part"));
      if (is_there) CHECK(support::read_text(disk / "out/part") == "whole");
      if (calls == files.calls()) CHECK(is_there);
    }
}
