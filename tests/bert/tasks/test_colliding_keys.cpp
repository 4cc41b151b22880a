// Files whose keys are made to have equal hashes are read in a time that grows with their size and not with its square.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <set>
#include <span>

#include "bert/tasks/ranking_scores.h"
#include "bert/tasks/squad_file.h"
#include "bert/tasks/table.h"
#include "support/colliding.h"
#include "support/growth.h"

using namespace bertrand::tasks;

namespace {

constexpr int kTexts = 2000;

/// The first `count` of 4 · kTexts texts.
std::span<const std::string> texts(int count) {
  static const std::vector<std::string> all = support::colliding_texts(4 * kTexts);
  return std::span(all).first(static_cast<std::size_t>(count));
}

}  // namespace

TEST_CASE("the texts have the same hash and are different") {
  const auto all = texts(4 * kTexts);
  CHECK(std::hash<std::string>()(all.front()) == std::hash<std::string>()(all.back()));
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
}

TEST_CASE("columns of JSON lines that are made to collide are found in linear time") {
  const double growth = support::growth_by_four(kTexts, [](int count) {
    const std::string line = fmt::format("{{\"{}\": 1}}\n", fmt::join(texts(count), "\": 1, \""));
    CHECK(parse_table(line, "t", TableFormat::jsonl).columns.size() == static_cast<std::size_t>(count));
  });
  CHECK(growth < 8);
}

TEST_CASE("ids of questions that are made to collide are compared in linear time") {
  const double growth = support::growth_by_four(kTexts, [](int count) {
    const std::string ids = fmt::format("{}", fmt::join(texts(count), "\"}, {\"question\": \"q\", \"id\": \""));
    const std::string text =
        R"({"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "q", "id": ")" + ids + "\"}]}]}]}";
    CHECK(parse_squad(text, "s").front().questions.size() == static_cast<std::size_t>(count));
  });
  CHECK(growth < 8);
}

TEST_CASE("passages that are made to collide are told apart in linear time") {
  const double growth = support::growth_by_four(kTexts, [](int count) {
    RepeatedPassages repeated;
    repeated.add("q", texts(count));
    CHECK(repeated.warning() == "");
  });
  CHECK(growth < 8);
}
