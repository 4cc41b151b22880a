#include "bert/tasks/held_out.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/refusal.h"

using namespace bertrand::tasks;

namespace {

std::size_t marked(const std::vector<bool>& rows) { return static_cast<std::size_t>(std::ranges::count(rows, true)); }

/// 100 rows: 60 of one label, 39 of another, one of a third.
std::vector<std::int32_t> groups() {
  std::vector<std::int32_t> all(100, 0);
  std::fill(all.begin() + 60, all.begin() + 99, 1);
  all[99] = 2;
  return all;
}

}  // namespace

TEST_CASE("a held-out part has the same share of every label and never a label's only row") {
  const std::vector<bool> part = held_out(groups(), {.share = 0.1, .seed = 42}, "train.csv");
  CHECK(marked(part) == 10);
  const auto of = [&](std::size_t begin, std::size_t end) {
    return marked({part.begin() + static_cast<std::ptrdiff_t>(begin), part.begin() + static_cast<std::ptrdiff_t>(end)});
  };
  CHECK(of(0, 60) == 6);
  CHECK(of(60, 99) == 4);
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    CHECK_FALSE(held_out(groups(), {.share = 0.9, .seed = seed}, "train.csv")[99]);
}

TEST_CASE("labels with one row leave their shares to no other") {
  std::vector<std::int32_t> rows;
  for (std::int32_t label = 0; label < 300; ++label) rows.push_back(label);
  rows.insert(rows.end(), 40, 300);
  rows.insert(rows.end(), 400, 301);
  const std::vector<bool> part = held_out(rows, {.share = 0.1, .seed = 1}, "train.csv");
  CHECK(marked({part.begin(), part.begin() + 300}) == 0);
  CHECK(marked({part.begin() + 300, part.begin() + 340}) <= 5);
  CHECK(marked({part.begin() + 340, part.end()}) == 40);
}

TEST_CASE("which rows are held out follows from the seed alone") {
  const auto part = [](std::uint64_t seed) { return held_out(groups(), {.share = 0.2, .seed = seed}, ""); };
  CHECK(part(1) == part(1));
  CHECK(part(1) != part(2));
}

TEST_CASE("a part of which no row would come is refused") {
  const std::vector<std::int32_t> four(4);
  CHECK(support::refusal(bertrand::Failure::input, [&] { held_out(four, {.share = 0.1}, "train.csv"); }) ==
        "train.csv: --eval-split: expected at least one row to evaluate on, got none of 4");
}

TEST_CASE("fractions of a row are carried on, from one label to the next too") {
  const std::vector<std::int32_t> two(2), labels = {0, 1, 1, 1};
  CHECK(marked(held_out(two, {.share = 0.25}, "")) == 1);  // 0.5 + 2 · 0.25
  const std::vector<bool> part = held_out(labels, {.share = 0.5}, "");
  CHECK(marked(part) == 2);
  CHECK_FALSE(part[0]);
}
