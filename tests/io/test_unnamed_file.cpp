#include "io/unnamed_file.h"

#include <doctest/doctest.h>

#include "io/error.h"
#include "support/file_limit.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand::io;

TEST_CASE("a file without a name holds what was appended, and the directory stays empty") {
  const support::TemporaryDirectory directory;
  UnnamedFile file(Files::system(), directory / "f");
  CHECK(std::filesystem::is_empty(directory / "."));
  for (const std::string part : {"one", "two"}) file.append(std::as_bytes(std::span(part)));
  const MappedFile mapped(file.name_to_map());
  CHECK(mapped.text() == "onetwo");
}

TEST_CASE("a file without a name is made though an earlier process left one of its name, which stays") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "f", "left");
  UnnamedFile file(Files::system(), directory / "f"), same(Files::system(), directory / "f");
  const std::string text = "mine";
  file.append(std::as_bytes(std::span(text)));
  CHECK(read_file(file.name_to_map()) == "mine");
  CHECK(read_file(same.name_to_map()) == "");
  CHECK(read_file(directory / "f") == "left");
  CHECK(std::distance(std::filesystem::directory_iterator(directory / "."), {}) == 1);
}

TEST_CASE("a file without a name that cannot be opened to be read leaves nothing") {
  const support::TemporaryDirectory directory;
  const support::FileLimit one(1);  // to write it
  const std::string line =
      support::refusal(bertrand::Failure::io, [&] { UnnamedFile(Files::system(), directory / "f"); });
  CHECK(line.starts_with((directory / "f").string() + "-"));
  CHECK(line.ends_with(": open: Too many open files"));
  CHECK(std::filesystem::is_empty(directory / "."));
}
