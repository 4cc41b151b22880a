#include "io/input_files.h"

#include <doctest/doctest.h>

#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;
using namespace std::string_view_literals;

namespace {

std::string nul_in(std::string_view bytes, std::uint64_t lines_before = 0) {
  return support::refusal(Failure::input, [&] { refuse_nul(bytes, "f", lines_before); });
}

}  // namespace

TEST_CASE("a NUL is refused with its line, and what a file looks like by its first bytes is said") {
  CHECK(nul_in("a\nb\n") == "");
  CHECK(nul_in("a\nb\0"sv) == "f:2: expected text in UTF-8, got a NUL byte");
  CHECK(nul_in("a\nb\0"sv, 7) == "f:9: expected text in UTF-8, got a NUL byte");
  CHECK(support::refusal(Failure::input, [] { refuse_nul("a\nb\0"sv, "f"); }) ==
        "f:2: expected text in UTF-8, got a NUL byte");
  CHECK(nul_in("\xFF\xFE"
               "a\0"sv) == "f:1: expected text in UTF-8, got a NUL byte; hint: it looks like UTF-16");
  CHECK(nul_in("\xFE\xFF\0a"sv) == "f:1: expected text in UTF-8, got a NUL byte; hint: it looks like UTF-16");
  CHECK(nul_in("\x1F\x8B\x08\0"sv) == "f:1: expected text in UTF-8, got a NUL byte; hint: it looks like gzip");
  const std::string nul = "f:1: expected text in UTF-8, got a NUL byte; hint: it looks like ";
  CHECK(nul_in("\xFD\x37zXZ\0"sv) == nul + "xz: unpack it first");
  CHECK(nul_in("BZh9\0"sv) == nul + "bzip2: unpack it first");
  CHECK(nul_in("PK\3\4\0"sv) == nul + "a zip file or a spreadsheet: save it as text or CSV");
  CHECK(nul_in("\xFF\xFE"
               "a\0"sv,
               1) == "f:2: expected text in UTF-8, got a NUL byte");
}

TEST_CASE("what a file that is not there was meant to be is told: the nearest name, or a directory to look at") {
  const support::TemporaryDirectory directory;
  const std::string here = (directory / "").parent_path();
  support::write_text(directory / "test.tsv", "");
  std::filesystem::create_directory(directory / "tets.tsv");
  std::filesystem::create_symlink("nothing", directory / "link.tsv");
  CHECK(hint_of_absent(directory / "tst.tsv") == "; did you mean test.tsv?");
  CHECK(hint_of_absent(directory / "link.tsv") == "; hint: it is a link to nothing");
  CHECK(hint_of_absent(directory / "predictions.json") == "");
  CHECK(hint_of_absent(directory / "none/test.tsv") == "; hint: " + here + "/none is no directory");
  CHECK(hint_of_absent(directory / "test.tsv/x") == "; hint: " + here + "/test.tsv is no directory");
  CHECK(hint_of_absent(directory / "tes.tsv", Named::any) == "; did you mean test.tsv?");
  std::filesystem::create_directory(directory / "model");
  for (const char* const name : {"modle", "modle/"}) {
    CHECK(hint_of_absent(directory / name, Named::any) == "; did you mean model?");
    CHECK(hint_of_absent(directory / name) == "");
  }
  CHECK(hint_of_absent("no-such-file.predictions") ==
        "; hint: it was looked for in " + std::filesystem::current_path().string());
}

TEST_CASE("a full directory is not looked through for the nearest name") {
  const support::TemporaryDirectory directory;
  for (int i = 0; i < 1000; ++i) std::filesystem::create_symlink("/", directory / std::to_string(i));
  support::write_text(directory / "train.tsv", "");
  CHECK(hint_of_absent(directory / "trian.tsv") == "");
  std::filesystem::remove(directory / "0");
  CHECK(hint_of_absent(directory / "trian.tsv") == "; did you mean train.tsv?");
}

TEST_CASE("a directory is refused as what the caller says it is, and a file is not") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "f", "");
  CHECK_NOTHROW(refuse_directory(directory / "f", "rows", Failure::input));
  CHECK_NOTHROW(refuse_directory(directory / "none", "rows", Failure::input));
  CHECK(support::refusal(Failure::model, [&] { refuse_directory("/tmp", "rows", Failure::model); }) ==
        "/tmp: rows: expected a file, got a directory");
}
