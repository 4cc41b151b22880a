// A table without a header where one is expected: its first row must not be lost.
#include <doctest/doctest.h>

#include "bert/tasks/walked_table.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

std::size_t examples_of(const Task& task, std::string_view bytes, TableFormat format = TableFormat::tsv) {
  const TableOptions options{.header = task.layouts.empty() && task.columns.header};
  return walk_table(task, parse_table(bytes, "data", format, options)).examples.size();
}

std::string refusal(const Task& task, std::string_view bytes) {
  return support::refusal(Failure::input, [&] { examples_of(task, bytes); });
}

}  // namespace

TEST_CASE("a table of a named task whose first row is an example is refused") {
  const std::string hint = "; hint: --task custom --no-header reads a table that has none";
  CHECK(refusal(named_task("sst2"), "the cat\t1\nthe dog\t0\n") ==
        "data:1: header: expected the names of columns, got the label \"1\"" + hint);
  CHECK(refusal(named_task("xnli"), "a\tb\tcontradictory\nc\td\tneutral\n") ==
        "data:1: header: expected the names of columns, got the label \"contradiction\"" + hint);
  CHECK(refusal(named_task("stsb"), "0\tg\tf\ty\to\ts\ts\tA\tB\t3.25\n1\tg\tf\ty\to\ts\ts\tC\tD\t1\n") ==
        "data:1: header: expected the names of columns, got the label \"3.25\"" + hint);
  CHECK(examples_of(named_task("sst2"), "sentence\tlabel\nthe dog\t0\n") == 1);
}

TEST_CASE("a table whose columns have numbers is refused if its header has a label of an example") {
  const Task task = custom_task({.columns = {.text = "0", .label = "1"}});
  const std::string hint =
      "; hint: --no-header if the first row is data, else --text-column and --label-column with names";
  CHECK(refusal(task, "the cat\t1\nthe dog\t0\nthe mat\t1\n") ==
        "data:1: header: expected the names of columns, got the label \"1\"" + hint);
  CHECK(refusal(custom_task({.kind = Kind::regression, .columns = {.text = "0", .label = "1"}}),
                "the cat\t1.5\nthe dog\t0\n") ==
        "data:1: header: expected the names of columns, got the label \"1.5\"" + hint);
  CHECK(examples_of(task, "review\tmood\nthe dog\tgood\nthe mat\tbad\n") == 2);
  CHECK(examples_of(task, "review\t\nthe dog\tgood\nthe mat\tbad\n") == 2);
  CHECK(examples_of(custom_task({.columns = {.text = "0", .label = "1", .header = false}}), "a\t1\nb\t1\n") == 2);
}

TEST_CASE("a column that is named, or that has its number for a name, has a header whatever its labels are") {
  const Task named = custom_task({.columns = {.text = "text", .label = "yes"}});
  CHECK(examples_of(named, "text\tyes\na\tyes\nb\tno\n") == 2);
  const Task numbered = custom_task({.columns = {.text = "0", .label = "1"}});
  CHECK(examples_of(numbered, "0\t1\na\t1\nb\t0\n") == 2);
  CHECK(examples_of(numbered, "\t0\t1\n0\ta\t1\n1\tb\t0\n") == 2);
  CHECK(examples_of(numbered, "{\"a\": \"x\", \"b\": \"b\"}\n", TableFormat::jsonl) == 1);
}

TEST_CASE("a table with a column that was found by a name has a header, though the label's name is a label") {
  CHECK(examples_of(custom_task({.columns = {.label = "1"}}), "text\t1\na\t1\nb\t0\n") == 2);
  CHECK(examples_of(custom_task({.columns = {.text = "0", .label = "1"}}), "Text\t1\na\t1\nb\t0\n") == 2);
  CHECK(examples_of(custom_task({.columns = {.text = "message", .label = "1"}}), "message\t1\na\t1\nb\t0\n") == 2);
  CHECK(examples_of(custom_task({.columns = {.label = "0"}}), "message\t0\na\t1\nb\t0\n") == 2);
  CHECK(examples_of(custom_task({.kind = Kind::regression, .columns = {.label = "2020"}}),
                    "message\t2020\na\t1.5\nb\t0\n") == 2);
}

TEST_CASE("a table whose label has the name of a class is read once its columns are given by their names") {
  const std::string_view table = "message\tspam\na\tspam\nb\tham\n";
  CHECK(refusal(custom_task({.columns = {.text = "0", .label = "1"}}), table).find("got the label \"spam\"; hint: ") !=
        std::string::npos);
  CHECK(examples_of(custom_task({.columns = {.text = "message", .label = "spam"}}), table) == 2);
}
