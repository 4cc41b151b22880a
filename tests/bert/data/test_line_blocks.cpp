#include "bert/data/line_blocks.h"

#include <doctest/doctest.h>

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
    for (std::string block; blocks.next(block, bytes);) {
      all += block;
      if (all.size() < text.size()) REQUIRE(block.back() == '\n');
    }
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
}

TEST_CASE("a line that no memory should hold is refused with its number, whatever was passed over before it") {
  const support::TemporaryDirectory directory;
  const auto blocks_of = [&](std::size_t longest, std::uint64_t skipped) {
    support::write_text(directory / "t", "one\ntwo\n");
    std::filesystem::resize_file(directory / "t", 8 + longest);  // zeros that take no room on the disk
    LineBlocks blocks(directory / "t");
    CHECK(blocks.skip(skipped));
    std::size_t count = 0;
    for (std::string block; blocks.next(block, std::size_t{1} << 20);) ++count;
    return count;
  };
  CHECK(blocks_of(LineSource::kLongest, 0) == 2);
  for (const std::uint64_t skipped : {0, 6})
    CHECK(support::refusal(bertrand::Failure::input, [&] { blocks_of(LineSource::kLongest + 1, skipped); }) ==
          (directory / "t").string() + ":3: expected a line of at most 67108864 bytes, got more");
}

TEST_CASE("lines are split into parts at line ends") {
  const std::string_view text = "a\nbb\n\nccc\nd";
  for (std::size_t parts = 1; parts < 15; ++parts) {
    std::string all;
    const auto list = split_lines(text, parts);
    CHECK(list.size() <= parts);
    for (const std::string_view part : list) {
      all += part;
      if (all.size() < text.size()) CHECK(part.back() == '\n');
    }
    CHECK(all == text);
  }
  std::vector<std::string> lines;
  for_each_line(text, [&](std::string_view line) { lines.emplace_back(line); });
  CHECK(lines == std::vector<std::string>{"a", "bb", "", "ccc", "d"});
  CHECK_THROWS_AS(LineBlocks("/nowhere"), bertrand::Error);
}
