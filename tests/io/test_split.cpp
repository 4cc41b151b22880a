#include "io/split.h"

#include <doctest/doctest.h>

using namespace bertrand::io;

namespace {

using Texts = std::vector<std::string_view>;

Texts all_of(Parts parts) {
  Texts texts;
  for (const std::string_view part : parts) texts.push_back(part);
  return texts;
}

}  // namespace

TEST_CASE("a line is given without its end, and the last one needs none") {
  CHECK(all_of(lines_of("a\nbb\n\nccc\nd")) == Texts{"a", "bb", "", "ccc", "d"});
  CHECK(all_of(lines_of("a\n")) == Texts{"a"});
  CHECK(all_of(lines_of("a\n\n")) == Texts{"a", ""});
  CHECK(all_of(lines_of("\n")) == Texts{""});
  CHECK(all_of(lines_of("")).empty());
}

TEST_CASE("what stands between separators may be empty, also after the last") {
  CHECK(all_of(split("a\t\tb\t", '\t')) == Texts{"a", "", "b", ""});
  CHECK(all_of(split("", '\t')) == Texts{""});
  CHECK(comma_list("0,,1,") == std::vector<std::string>{"0", "", "1", ""});
}
