// What is no UTF-8 in tables: texts lose it, and two labels never become one by it.
#include <doctest/doctest.h>

#include "bert/tasks/walked_table.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Cells = std::vector<std::string>;
using Columns = std::vector<std::size_t>;

std::vector<Row> rows_of(const Table& table) {
  std::vector<Row> rows;
  table.rows.for_each([&](const Row& row) { rows.push_back(row); });
  return rows;
}

WalkedTable dataset_of(const Task& task, std::string_view bytes, bool needs_label = true) {
  return walk_table(task, parse_table(bytes, "data", TableFormat::tsv), needs_label);
}

std::string refusal(const Task& task, std::string_view bytes) {
  return support::refusal(Failure::input, [&] { dataset_of(task, bytes); });
}

const std::string kNoUtf8 = ": label: expected UTF-8, got other bytes; hint: iconv turns other encodings into UTF-8";
const Task kFlags = custom_task({.kind = Kind::multi_label, .columns = {.label = "x,y"}});

}  // namespace

TEST_CASE("what is no UTF-8 is left out before quotes, cells and empty lines are looked for, and its cells are known") {
  const std::string text = "a,b\n\xA0\"a, b\"\xA0,x\n\"c\xE9\nd\",x\xE9\r\ny,\xE8\"z\"\xE8,z\n\xA0\n";
  for (const std::size_t part : {1, 3, 100}) {
    CAPTURE(part);
    TableOptions options{.skip_bad_rows = true, .part = part};
    const Table table = parse_table("\xEF\xBB\xBF" + text, "t", TableFormat::csv, options);
    REQUIRE(table.rows.size() == 2);
    const std::vector<Row> rows = rows_of(table);
    CHECK(rows[0].cells == Cells{"a, b", "x"});
    CHECK(rows[0].invalid == Columns{0});
    CHECK(rows[1].cells == Cells{"c\nd", "x"});
    CHECK(rows[1].invalid == Columns{0, 1});
    REQUIRE(table.skipped.size() == 1);
    CHECK(table.skipped[0].line == 5);
    CHECK(table.invalid.count == 7);
    const Table tabs = parse_table("a\tcaf\xE9\n1\t\xFF\n2\t3\n4\xFF\t5", "t", TableFormat::tsv, {.part = part});
    CHECK(tabs.columns == Cells{"a", "caf"});
    CHECK(tabs.invalid_columns == Columns{1});
    const std::vector<Row> lines = rows_of(tabs);
    CHECK(lines.at(0).cells == Cells{"1", ""});
    CHECK(lines[0].invalid == Columns{1});
    CHECK(lines.at(1).invalid.empty());
    CHECK(lines.at(2).invalid == Columns{0});
  }
}

TEST_CASE("bytes that are no UTF-8 are dropped from texts, counted, and the first is named") {
  const WalkedTable data = dataset_of(custom_task({}), "text\tlabel\nA\tone\ncaf\xE9\xFF\ttwo\n");
  CHECK(data.examples.at(1).text_a == "caf");
  CHECK(data.examples[1].label == "two");
  CHECK(data.dataset.invalid.count == 2);
  CHECK(data.dataset.invalid.first_line == 3);
}

TEST_CASE("a label that is not UTF-8 is refused, so that two labels never become one") {
  const std::string rows = "text\tlabel\na\xFF\tcaf\xC3\xA9\nb\tcaf\xE8\nc\tx\n";
  CHECK(refusal(custom_task({}), rows) == "data:3" + kNoUtf8);
  CHECK(refusal(custom_task({.kind = Kind::regression}), "text\tlabel\na\t1\xFF\n") == "data:2" + kNoUtf8);
  CHECK(refusal(kFlags, "text\tx\ty\na\t1\t0\nb\t0\xFF\t1\n") == "data:3" + kNoUtf8);
}

TEST_CASE("a label that is not UTF-8 is none where labels are not needed") {
  const WalkedTable data = dataset_of(custom_task({}), "text\tlabel\na\tcaf\xE9\nb\tzzz\n", false);
  REQUIRE(data.examples.size() == 2);
  CHECK(data.examples[0].text_a == "a");
  CHECK(data.examples[0].label == std::nullopt);
  CHECK(data.examples[1].label == "zzz");
  CHECK(data.dataset.invalid.count == 1);
  CHECK(dataset_of(kFlags, "text\tx\ty\na\t1\t0\xFF\n", false).examples.at(0).label == std::nullopt);
}

TEST_CASE("several label columns have different names in UTF-8, as two labels must not become one") {
  const Task task = custom_task({.kind = Kind::multi_label, .columns = {.label = "1,2"}});
  CHECK(refusal(task, "text\tx\tx\nA\t1\t0\n") ==
        "data:1: --label-column: expected columns with different names, got \"x\" twice; hint: name each after its "
        "label");
  CHECK(refusal(task, "text\tcaf\xE9\tcaf\xE8\nA\t1\t0\n") == "data:1" + kNoUtf8);
  CHECK(dataset_of(task, "text\tx\tx\nA\t1\t0\n", false).examples.at(0).label == "x");
}
