#include <doctest/doctest.h>

#include <algorithm>

#include "distributed/pairwise_tree.h"

using namespace bertrand::distributed;

namespace {

/// The nodes that are left of runs of these lengths, as "first+count".
std::string left_over(const std::vector<std::int64_t>& counts, std::int64_t parts, std::int64_t first = 0) {
  std::vector<Addend> addends;
  for (const std::int64_t count : counts) {
    addends.push_back({.first = first, .count = count, .values = {}});
    first += count;
  }
  std::string text;
  for (const Addend& node : add_siblings(addends, parts, [](const auto&, const auto&) {}))
    text += (text.empty() ? "" : " ") + std::to_string(node.first) + "+" + std::to_string(node.count);
  return text;
}

}  // namespace

TEST_CASE("only the halves of one node of the tree are siblings") {
  const auto are = [](std::int64_t first, std::int64_t count, std::int64_t right, std::int64_t parts) {
    return siblings({.first = first, .count = count, .values = {}},
                    {.first = first + count, .count = right, .values = {}}, parts);
  };
  CHECK(are(0, 1, 1, 8));
  CHECK_FALSE(are(1, 1, 1, 8));  // 1 is a right half
  CHECK(are(4, 2, 2, 8));
  CHECK_FALSE(are(4, 2, 1, 8));  // not yet the whole right half
  CHECK(are(4, 2, 1, 7));        // which is a single part here
  CHECK(are(0, 4, 1, 5));
  CHECK_FALSE(are(2, 2, 1, 5));
  CHECK_FALSE(siblings({.first = 0, .count = 2, .values = {}}, {.first = 3, .count = 1, .values = {}}, 4));  // a gap
}

TEST_CASE("a run of parts is added up as far as it does not reach into a node of another replica") {
  CHECK(left_over({1, 1, 1, 1, 1}, 5) == "0+5");
  CHECK(left_over({1, 1, 1}, 5) == "0+2 2+1");
  CHECK(left_over({1, 1}, 5, 3) == "3+1 4+1");
  CHECK(left_over({1, 1, 1}, 6, 3) == "3+1 4+2");
  CHECK(left_over({1, 1, 1, 1}, 7, 3) == "3+1 4+3");
  CHECK(left_over({2, 1, 1, 1}, 5) == "0+5");
  CHECK(left_over({}, 5).empty());
}

TEST_CASE("up to so many parts in a row are left as the most nodes at most, and some as just as many") {
  constexpr std::int64_t kParts = 80;
  std::size_t left = 0;
  for (std::int64_t count = 1; count <= kParts / 2; ++count) {
    for (std::int64_t parts = count; parts <= kParts; ++parts)
      for (std::int64_t first = 0; first + count <= parts; ++first) {
        std::vector<Addend> row;
        for (std::int64_t part = first; part < first + count; ++part) row.push_back({.first = part, .values = {}});
        left = std::max(left, add_siblings(row, parts, [](const auto&, const auto&) {}).size());
      }
    CAPTURE(count);
    CHECK(left == most_nodes(count));
  }
  CHECK(most_nodes(0) == 0);
}
