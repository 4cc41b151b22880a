// How long the records of prepare records are.
#include <doctest/doctest.h>

#include "support/program.h"

using support::run_program;

TEST_CASE("prepare records cuts the share of documents into shorter records that --short-seq-prob says") {
  const support::TemporaryDirectory directory;
  std::string document;
  for (int i = 0; i < 40; ++i) document += "a b c\n";
  support::write_text(directory / "words", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n");
  support::write_text(directory / "text", document + "\n" + document);
  const auto lines = [&](const std::string& share) {
    const support::Outcome outcome =
        run_program("prepare", {"records", "--vocab-file", directory / "words", "--input", directory / "text",
                                "--output", directory / "records", "--max-seq-length", "32", "--dupe-factor", "20",
                                "--short-seq-prob", share, "--overwrite"});
    REQUIRE(outcome.code == 0);
    return std::ranges::count(run_program("prepare", {"dump", directory / "records"}).out, '\n');
  };
  const auto whole = lines("0"), cut = lines("1");
  CHECK(cut > whole * 3 / 2);
}
