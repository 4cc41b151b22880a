// The files that a command line names.
#include "io/file_arguments.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;
namespace fs = std::filesystem;

TEST_CASE("the bytes of all inputs are counted, and inputs and outputs that cannot be are refused before any work") {
  const support::TemporaryDirectory directory;
  const fs::path one = directory / "one", two = directory / "two", pipe = directory / "pipe", here = directory / "";
  support::write_text(one, "12345");
  support::write_text(two, "123");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const fs::path out = directory / "out", none = directory / "none";
  CHECK(check_files({}, {}) == 0);
  CHECK(check_files({one, pipe, two}, {out, here / "out2"}) == 8);
  const auto is_refused = [](Failure failure, const std::vector<fs::path>& inputs,
                             const std::vector<fs::path>& outputs) {
    return !support::refusal(failure, [&] { check_files(inputs, outputs); }).empty();
  };
  CHECK(is_refused(Failure::input, {one, none}, {}));
  CHECK(is_refused(Failure::input, {one, here}, {}));
  CHECK(is_refused(Failure::usage, {one}, {here}));
  CHECK(is_refused(Failure::io, {one}, {none / "out"}));
  CHECK(is_refused(Failure::usage, {one, two}, {out, here / "two"}));
  CHECK(is_refused(Failure::usage, {one}, {out, here / "." / "out"}));
  CHECK_FALSE(is_refused(Failure::usage, {one}, {"a-name-without-a-directory"}));
  for (const char* compressed : {"out.gz", "out.ZST"}) CHECK(is_refused(Failure::usage, {one}, {here / compressed}));
  CHECK(is_refused(Failure::usage, {one}, {"-"}));
  fs::create_symlink("nothing", here / "link");
  CHECK(support::refusal(Failure::input, [&] { check_files({here / "link"}, {}); }) ==
        (here / "link").string() + ": input: expected a file, got nothing there; hint: it is a link to nothing");
  const fs::path long_name = here / std::string(300, 'x');
  CHECK(support::refusal(Failure::io, [&] { check_files({long_name}, {}); }) ==
        long_name.string() + ": open: File name too long");
  for (const char* several : {"one,two", "t*"})
    CHECK(support::refusal(Failure::input, [&] { check_files({here / several}, {}); }) ==
          (here / several).string() +
              ": input: expected a file, got nothing there; hint: names have blanks between them, and patterns are the "
              "shell's, which knows none in quotes");
}

TEST_CASE("what is to be read twice is no pipe") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "file", "1");
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  const auto is_refused = [&](const std::vector<fs::path>& inputs) {
    return !support::refusal(Failure::input, [&] { check_readable_twice(inputs); }).empty();
  };
  CHECK_FALSE(is_refused({}));
  CHECK_FALSE(is_refused({directory / "file", directory / "none", directory / "file"}));
  CHECK(is_refused({directory / "file", directory / "pipe"}));
}
