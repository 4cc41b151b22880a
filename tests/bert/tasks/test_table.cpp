#include <doctest/doctest.h>

#include "bert/tasks/table.h"
#include "tensor/error.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Cells = std::vector<std::string>;

std::string message_of(std::string_view bytes, TableFormat format, const TableOptions& options = {}) {
  try {
    parse_table(bytes, "rows", format, options);
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::input);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a quote in TSV is an ordinary character") {
  const Table table = parse_table("a\tb\n\"x\t\"y\"\" z\"\n", "t", TableFormat::tsv);
  CHECK(table.columns == Cells{"a", "b"});
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].cells == Cells{"\"x", "\"y\"\" z\""});
  CHECK(table.rows[0].line == 2);
}

TEST_CASE("a byte order mark is dropped, CRLF ends a line, and empty lines at the end do not count") {
  for (const auto format : {TableFormat::tsv, TableFormat::csv}) {
    const std::string tab = format == TableFormat::tsv ? "\t" : ",";
    const Table table = parse_table(
        "\xEF\xBB\xBF"
        "a" +
            tab + "b\r\n1" + tab + "2\r\n3" + tab + "\n\r\n\n",
        "t", format);
    CHECK(table.columns == Cells{"a", "b"});
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0].cells == Cells{"1", "2"});
    CHECK(table.rows[1].cells == Cells{"3", ""});
  }
}

TEST_CASE("CSV cells in quotes hold commas, doubled quotes and line ends") {
  const Table table = parse_table("id,text,label\n1,\"a, \"\"b\"\"\nc\r\nd\",x\n2,no \"quote\" here,\"\"\n3,last,y",
                                  "t", TableFormat::csv);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].cells == Cells{"1", "a, \"b\"\nc\r\nd", "x"});
  CHECK(table.rows[0].line == 2);
  CHECK(table.rows[1].cells == Cells{"2", "no \"quote\" here", ""});
  CHECK(table.rows[1].line == 5);
  CHECK(table.rows[2].cells == Cells{"3", "last", "y"});
}

TEST_CASE("JSON lines are objects whose keys are the columns") {
  const Table table =
      parse_table("{\"text\": \"caf\\u00e9\", \"label\": 3}\n{\"label\": true, \"more\": [\"a\", 2], \"text\": null}\n",
                  "t", TableFormat::jsonl, {.list_separator = ";"});
  CHECK(table.columns == Cells{"text", "label", "more"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].cells == Cells{"caf\xC3\xA9", "3", ""});
  CHECK(table.rows[1].cells == Cells{"", "true", "a;2"});
  CHECK(table.rows[1].line == 2);
}

TEST_CASE("a bad row names file and line, what was expected and what was found") {
  CHECK(message_of("a\tb\n1\t2\n1\n", TableFormat::tsv) == "rows:3: columns: expected 2 as in line 1, got 1");
  CHECK(message_of("a,b\n1,\"2\n3\"\n1,2,3\n", TableFormat::csv) == "rows:4: columns: expected 2 as in line 1, got 3");
  CHECK(message_of("a\tb\n1\t2\n\n1\t2\n", TableFormat::tsv) == "rows:3: columns: expected 2 as in line 1, got 1");
  CHECK(message_of("a,b\n1,\"2\n", TableFormat::csv) ==
        "rows:2: quoted cell: expected a closing quote, got the end of the file");
  CHECK(message_of("a,b\n1,\"2\"x\n", TableFormat::csv) ==
        "rows:2: quoted cell: expected a comma or the row's end after its closing quote, got \"x\"");
  CHECK(message_of(std::string_view("a\tb\n1\t\0002\n", 8), TableFormat::tsv) ==
        "rows:2: expected text in UTF-8, got a NUL byte");
  CHECK(message_of("{\"a\": 1}\n[1]\n", TableFormat::jsonl) == "rows:2: expected a JSON object, got [1]");
  CHECK(message_of("{\"a\": 1}\n{\"a\": \n", TableFormat::jsonl) == "rows:2: expected a JSON object, got {\"a\": ");
  CHECK(message_of("{\"a\": {\"b\": 1}}", TableFormat::jsonl) ==
        "rows:1: a: expected a string, a number or a list of them, got an object");
  CHECK(message_of("{\"a\": [\"x,y\"]}", TableFormat::jsonl) ==
        "rows:1: a: expected items without the label separator \",\", got \"x,y\"");
}

TEST_CASE("ragged rows can be left out and are counted") {
  const Table table =
      parse_table("1\t2\n3\n4\t5\n6\t7\t8\n", "t", TableFormat::tsv, {.header = false, .skip_ragged_rows = true});
  CHECK(table.rows.size() == 2);
  CHECK(table.skipped_lines == std::vector<std::int64_t>{2, 4});
}

TEST_CASE("a column is found by its name, else by its number from 0") {
  const Table table = parse_table("text\t0\nx\ty\n", "t", TableFormat::tsv);
  CHECK(table.find_column("text") == 0);
  CHECK(table.find_column("0") == 1);  // a name before a number
  CHECK(table.find_column("1") == 1);
  CHECK_FALSE(table.find_column("2"));
  CHECK_FALSE(table.find_column("-1"));
  CHECK_FALSE(table.find_column(""));
}

TEST_CASE("the format follows from the extension") {
  CHECK(table_format("a/b.tsv") == TableFormat::tsv);
  CHECK(table_format("b.txt.gz") == TableFormat::tsv);
  CHECK(table_format("b.csv") == TableFormat::csv);
  CHECK(table_format("b.jsonl.gz") == TableFormat::jsonl);
  CHECK_THROWS_AS(table_format("b.json"), Error);
  CHECK_THROWS_AS(table_format("tsv"), Error);
}

TEST_CASE("a file that is not there is named with the system's reason") {
  CHECK_THROWS_WITH_AS(read_table("no/such/file.tsv"),
                       "no/such/file.tsv: open: expected a readable file, got No such file or directory", Error);
}
