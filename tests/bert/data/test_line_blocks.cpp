#include "bert/data/line_blocks.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "io/line_source.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand::data;
using bertrand::io::LineSource;

TEST_CASE("blocks end where lines end, whatever their size, and together are the file") {
  const support::TemporaryDirectory directory;
  const std::string text = "one\n\n" + std::string(50, 'x') + "\ntwo three\n\nlast without end";
  support::write_text(directory / "t", text);
  for (std::size_t bytes = 1; bytes < text.size() + 2; ++bytes) {
    LineBlocks blocks(directory / "t");
    std::string all;
    while (const auto block = blocks.next(bytes)) {
      REQUIRE(block->lines_before == static_cast<std::uint64_t>(std::ranges::count(all, '\n')));
      all += block->text;
      if (all.size() < text.size()) REQUIRE(block->text.back() == '\n');
    }
    REQUIRE_FALSE(blocks.next(bytes));
    REQUIRE(all == text);
  }
}

TEST_CASE("what was read before is passed over, and a file that has become shorter than that is told") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "t", "one\ntwo\n");
  const auto skipped = [&](std::uint64_t bytes) { return LineBlocks(directory / "t").skip(bytes); };
  CHECK(skipped(0));
  CHECK(skipped(8));
  CHECK_FALSE(skipped(9));
  LineBlocks blocks(directory / "t");
  REQUIRE(blocks.skip(4));
  const auto rest = blocks.next(100);
  REQUIRE(rest);
  CHECK(rest->text == "two\n");
  CHECK(rest->lines_before == 1);
}

TEST_CASE("a line that no memory should hold is refused with its number, whatever was passed over before it") {
  const support::TemporaryDirectory directory;
  const auto blocks_of = [&](std::size_t longest, std::uint64_t skipped) {
    support::write_text(directory / "t", "one\ntwo\n");
    std::filesystem::resize_file(directory / "t", 8 + longest);  // zeros that take no room on the disk
    LineBlocks blocks(directory / "t");
    CHECK(blocks.skip(skipped));
    std::size_t count = 0;
    while (blocks.next(std::size_t{1} << 20)) ++count;
    return count;
  };
  CHECK(blocks_of(LineSource::kLongest, 0) == 2);
  for (const std::uint64_t skipped : {0, 6})
    CHECK(support::refusal(bertrand::Failure::input, [&] { blocks_of(LineSource::kLongest + 1, skipped); }) ==
          (directory / "t").string() + ":3: expected a line of at most 67108864 bytes, got more");
}

TEST_CASE("a file that is not there has no blocks") { CHECK_THROWS_AS(LineBlocks("/nowhere"), bertrand::Error); }
