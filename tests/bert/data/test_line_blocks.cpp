#include "bert/data/line_blocks.h"

#include <doctest/doctest.h>

#include "io/error.h"
#include "support/program.h"

using namespace bertrand::data;

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
