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
  CHECK(std::string(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()) == "onetwo");
  support::write_text(directory / "taken", "");
  CHECK_THROWS_AS(UnnamedFile(Files::system(), directory / "taken"), bertrand::Error);
}

TEST_CASE("a file without a name that cannot be opened to be read leaves nothing") {
  const support::TemporaryDirectory directory;
  const support::FileLimit one(1);  // to write it
  CHECK(support::refusal(bertrand::Failure::io, [&] {
          UnnamedFile(Files::system(), directory / "f");
        }).ends_with("f: open: Too many open files"));
  CHECK(std::filesystem::is_empty(directory / "."));
}
