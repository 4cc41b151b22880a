#include <doctest/doctest.h>

#include "bert/tasks/table.h"
#include "io/error.h"
#include "support/gzip.h"
#include "support/program.h"
#include "support/refusal.h"

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

std::vector<Row> rows_of(const Table& table) {
  std::vector<Row> rows;
  table.rows.for_each([&](const Row& row) { rows.push_back(row); });
  return rows;
}

}  // namespace

TEST_CASE("a quote in TSV is an ordinary character") {
  const Table table = parse_table("a\tb\n\"x\t\"y\"\" z\"\n", "t", TableFormat::tsv);
  CHECK(table.columns == Cells{"a", "b"});
  REQUIRE(table.rows.size() == 1);
  const std::vector<Row> rows = rows_of(table);
  CHECK(rows[0].cells == Cells{"\"x", "\"y\"\" z\""});
  CHECK(rows[0].line == 2);
}

TEST_CASE("a cell of TSV that a spreadsheet has quoted is noted, and a row that is broken for it says what to do") {
  const auto noted = [](const std::string& rows) {
    return parse_table("a\tb\n" + rows, "t", TableFormat::tsv).quoted_line;
  };
  CHECK(noted("1\t2\n\"say \"\"hi\"\"\"\t3\n\"\"\"x\"\"\"\t4\n") == 3);
  CHECK(noted("\"\"\"\"\tone quote\n") == 2);
  // As authors write: quotes about a sentence, two of them, and one that is open.
  CHECK(noted("\"hi\"\t\"a\" and \"b\"\n\"\"a\"\"\t\"\n\"\"\t\"x\"\"\n") == 0);
  CHECK(parse_table("a,b\n\"\"\"x\"\"\",1\n", "t", TableFormat::csv).quoted_line == 0);
  const std::string hint = "; hint: .tsv has no quoted cells; save the table as .csv";
  CHECK(message_of("a\tb\n\"x\ty\"\t1\n", TableFormat::tsv) ==
        "rows:2: columns: expected 2 as in line 1, got 3" + hint);
  CHECK(message_of("a\tb\n\"x\ny\"\t1\n", TableFormat::tsv) ==
        "rows:2: columns: expected 2 as in line 1, got 1" + hint);
}

TEST_CASE("a table whose lines end in CR alone is refused, and a CR within a line is text") {
  const std::string message =
      "rows:1: expected lines that end in LF or CRLF, got CR alone; hint: tr '\\r' '\\n' <FILE >NEW";
  CHECK(message_of("a\tb\r1\t2\r", TableFormat::tsv) == message);
  for (const std::size_t part : {1, 100})
    CHECK(message_of("a,b\r1,2\r3,4", TableFormat::csv, {.part = part}) == message);
  CHECK(rows_of(parse_table("a,b\n1\r,2\n", "t", TableFormat::csv)).at(0).cells == Cells{"1\r", "2"});
  CHECK(message_of("a,b\r\n", TableFormat::csv) == "no error");
  CHECK(message_of("{\r\"a\": 1}", TableFormat::jsonl) == "no error");
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
    const std::vector<Row> rows = rows_of(table);
    CHECK(rows[0].cells == Cells{"1", "2"});
    CHECK(rows[1].cells == Cells{"3", ""});
  }
}

TEST_CASE("CSV cells in quotes hold commas, doubled quotes and line ends") {
  const Table table = parse_table("id,text,label\n1,\"a, \"\"b\"\"\nc\r\nd\",x\n2,no \"quote\" here,\"\"\n3,last,y",
                                  "t", TableFormat::csv);
  REQUIRE(table.rows.size() == 3);
  const std::vector<Row> rows = rows_of(table);
  CHECK(rows[0].cells == Cells{"1", "a, \"b\"\nc\r\nd", "x"});
  CHECK(rows[0].line == 2);
  CHECK(rows[1].cells == Cells{"2", "no \"quote\" here", ""});
  CHECK(rows[1].line == 5);
  CHECK(rows[2].cells == Cells{"3", "last", "y"});
}

TEST_CASE("JSON lines are objects whose keys are the columns") {
  const Table table =
      parse_table("{\"text\": \"caf\\u00e9\", \"label\": 3}\n{\"label\": true, \"more\": [\"a\", 2], \"text\": null}\n",
                  "t", TableFormat::jsonl, {.list_separator = ";"});
  CHECK(table.columns == Cells{"text", "label", "more"});
  REQUIRE(table.rows.size() == 2);
  const std::vector<Row> rows = rows_of(table);
  const auto cells_of = [](const Row& row) { return Cells{row.cell(0), row.cell(1), row.cell(2)}; };
  CHECK(cells_of(rows[0]) == Cells{"caf\xC3\xA9", "3", ""});
  CHECK(cells_of(rows[1]) == Cells{"", "true", "a;2"});
  CHECK(rows[1].line == 2);
  CHECK(rows_of(parse_table("{\"a\": 1}\n{}\n", "t", TableFormat::jsonl)).at(1).cell(0) == "");
}

TEST_CASE("whole numbers in JSON lines keep every digit, of however many bits they are") {
  const Table table = parse_table(
      "{\"id\": 18446744073709551616}\n{\"id\": 18446744073709551617}\n{\"id\": [-9223372036854775809, 1e20]}\n", "t",
      TableFormat::jsonl, {.list_separator = ";"});
  const std::vector<Row> rows = rows_of(table);
  CHECK(rows[0].cell(0) == "18446744073709551616");
  CHECK(rows[1].cell(0) == "18446744073709551617");
  CHECK(rows[2].cell(0) == "-9223372036854775809;1e+20");
}

TEST_CASE("a bad row names file and line, what was expected and what was found") {
  CHECK(message_of("a\tb\n1\t2\n1\n", TableFormat::tsv) == "rows:3: columns: expected 2 as in line 1, got 1");
  CHECK(message_of("a,b\n1,\"2\n3\"\n1,2,3\n", TableFormat::csv) == "rows:4: columns: expected 2 as in line 1, got 3");
  CHECK(
      message_of("text;label\na;b\nc, d;e\n", TableFormat::csv) ==
      "rows:3: columns: expected 1 as in line 1, got 2; hint: a .csv has commas between its cells, a .tsv or .txt has "
      "tabs");
  CHECK(message_of("a\tb\n1\t2\n\n1\t2\n", TableFormat::tsv) == "rows:3: columns: expected 2 as in line 1, got 1");
  CHECK(message_of("a,b\n1,\"2\n", TableFormat::csv) ==
        "rows:2: quoted cell: expected a closing quote, got the end of the file");
  CHECK(message_of("a,b\n1,\"2\"x\n", TableFormat::csv) ==
        "rows:2: quoted cell: expected a comma or the row's end after its closing quote, got \"x\"");
  CHECK(message_of(std::string_view("a\tb\n1\t\0002\n", 8), TableFormat::tsv) ==
        "rows:2: expected text in UTF-8, got a NUL byte");
  CHECK(message_of("{\"a\": 1}\n[1]\n", TableFormat::jsonl) == "rows:2: expected a JSON object, got [1]");
  for (const char* list : {"[{\"a\": 1}]", "[\n  {\n    \"a\": 1\n  }\n]\n"})
    CHECK(message_of(list, TableFormat::jsonl) ==
          "rows:1: expected a JSON object in each line, got a list; hint: jq -c '.[]' FILE writes its items as lines");
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK(message_of("{\"a\": " + deep + "}", TableFormat::jsonl) ==
        "rows:1: expected at most 64 levels of values in each other, got more");
}

TEST_CASE("JSON that does not parse names the byte and the reason in one short line") {
  const std::string what = "rows:2: expected JSON, got";
  const auto message = [](const std::string& line) { return message_of("{\"a\": 1}\n" + line, TableFormat::jsonl); };
  CHECK(message("{\"a\": ") == what + " a syntax error at byte 7: unexpected end of input");
  CHECK(message("{\"a\": 1} {}") == what + " a syntax error at byte 10: unexpected '{'");
  CHECK(message("{\"a\": nan}") == what + " a syntax error at byte 8: invalid literal");
  CHECK(message(R"({"a": "\ud800 b"})") ==
        what +
            " a syntax error at byte 14: invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF");
  CHECK(message("{\"a\": \"caf\xE9\"}") == what + " a syntax error at byte 12: invalid string: ill-formed UTF-8 byte" +
                                               "; hint: iconv turns other encodings into UTF-8");
  CHECK(message("{\"a\": 1e999}") == what + " a number that no double can hold");
  CHECK(message("{\"a\": 1" + std::string(1000, '0') + "}").size() < 160);
}

TEST_CASE("a key that comes twice in a JSON line is refused") {
  CHECK(message_of("{\"a\": 1, \"b\": 2}\n{\"a\": 1, \"b\": 2, \"a\": 3}\n", TableFormat::jsonl) ==
        "rows:2: \"a\": expected once, got it twice");
}

TEST_CASE("what is no text is refused where its first NUL stands, in a header too") {
  using namespace std::string_view_literals;
  for (const auto format : {TableFormat::tsv, TableFormat::csv, TableFormat::jsonl})
    CHECK(message_of("te\0xt\n"sv, format) == "rows:1: expected text in UTF-8, got a NUL byte");
  CHECK(message_of("\xFF\xFEt\0e\0x\0t\0\n\0"sv, TableFormat::tsv) ==
        "rows:1: expected text in UTF-8, got a NUL byte; hint: it looks like UTF-16");
  CHECK(message_of(R"({"a": "b\u0000"})", TableFormat::jsonl) == "rows:1: expected text without \\u0000, got one");
  CHECK(message_of(R"({"a\u0000": "b"})", TableFormat::jsonl) == "rows:1: expected text without \\u0000, got one");
}

TEST_CASE("a name that two columns have finds neither, their numbers do") {
  const Table table = parse_table("text\tlabel\ttext\nx\ty\tz\n", "t", TableFormat::tsv);
  CHECK(table.find_column("label") == 1);
  CHECK(table.find_column("2") == 2);
  CHECK_THROWS_WITH_AS(table.find_column("text"),
                       "t:1: columns: expected one of the name \"text\", got two; hint: a number names one of them",
                       Error);
}

TEST_CASE("a table that is a directory or damaged gzip is named once") {
  const support::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "d.tsv");
  CHECK_THROWS_WITH_AS(read_table(directory / "d.tsv"),
                       ((directory / "d.tsv").string() + ": rows: expected a file, got a directory").c_str(), Error);
  support::write_text(directory / "t.tsv.gz", std::string("\x1F\x8B\x08\0\0\0\0\0\0\3ab", 12));
  CHECK_THROWS_WITH_AS(
      read_table(directory / "t.tsv.gz"),
      ((directory / "t.tsv.gz").string() + "@0: expected whole compressed data, got unexpected end of file").c_str(),
      Error);
}

TEST_CASE("a table is the same whatever parts its bytes come in, held or on the disk") {
  const support::TemporaryDirectory directory;
  struct Case {
    std::string bytes;
    TableFormat format;
  };
  const std::vector<Case> cases = {
      {"\xEF\xBB\xBFone\ttwo\r\nx\xFF\ty\xC3\xA9\r\n\ta\n1\t2\n\n\r\n", TableFormat::tsv},
      {"a,b\n\"1\n\n,\"\"2\",\"\r\n\"\n\xC3\xA9,\"\xFFq\"\r\nlast,\"\"\n\n", TableFormat::csv},
      {"{\"a\": \"b\", \"d\": {\"e\": [1]}}\r\n{\"c\": [1, \"\xE2\x82\xAC\"], \"a\": \"\"}\n{\"a\": \"\\n\"}\n\n",
       TableFormat::jsonl}};
  for (const auto& [bytes, format] : cases) {
    const Table whole = parse_table(bytes, "t", format);
    CHECK_FALSE(whole.rows.is_spilled());
    const std::vector<Row> expected = rows_of(whole);
    CHECK(expected.size() == 3);
    for (std::size_t part = 1; part <= bytes.size(); ++part) {
      const io::SpillPlace place{.directory = std::filesystem::path(directory / "."), .held_bytes = 3 * part};
      const Table parts = parse_table(bytes, "t", format, {.spill = place, .part = part});
      CAPTURE(part);
      CHECK(parts.columns == whole.columns);
      CHECK(parts.width == whole.width);
      CHECK(parts.invalid.count == whole.invalid.count);
      CHECK(parts.invalid.first_line == whole.invalid.first_line);
      CHECK(parts.invalid.first_column == whole.invalid.first_column);
      const std::vector<Row> rows = rows_of(parts);
      REQUIRE(rows.size() == expected.size());
      CHECK(parts.rows.front().cells == expected.front().cells);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(rows[i].cells == expected[i].cells);
        CHECK(rows[i].columns == expected[i].columns);
        CHECK(rows[i].lists == expected[i].lists);
        CHECK(rows[i].line == expected[i].line);
      }
      if (part == 1) CHECK(parts.rows.is_spilled());
    }
  }
  CHECK(std::filesystem::is_empty(std::filesystem::path(directory / ".")));
}

TEST_CASE("a bad row of a table that comes in parts has the line and the words that it has in one") {
  using namespace std::string_view_literals;
  const std::vector<std::pair<std::string_view, TableFormat>> cases = {
      {"a\tb\n1\t2\n3\t4\n1\n5\t6\n"sv, TableFormat::tsv},
      {"a,b\n\"1\n2\",3\n1,2,3\n"sv, TableFormat::csv},
      {"a,b\n1,2\n3,\"4\n5\n6,7\n"sv, TableFormat::csv},
      {"a,b\n1,\"2\n\"x\n3,4\n"sv, TableFormat::csv},
      {"{\"a\": 1}\n\n[{}]\n"sv, TableFormat::jsonl},
      {"a\tb\n1\t2\n1\t\0x\n3\t4\n"sv, TableFormat::tsv},
      {"a\tb\n\n1\t2\n"sv, TableFormat::tsv},
      {"{\"a\": 1}\n{\"a\": 2}\n{\"a\""sv, TableFormat::jsonl},
      {"\xFF\xFEt\0\n\0x\0\n\0"sv, TableFormat::tsv}};
  for (const auto& [bytes, format] : cases) {
    const std::string expected = message_of(bytes, format);
    CHECK(expected != "no error");
    for (std::size_t part = 1; part < bytes.size(); ++part)
      CHECK(message_of(bytes, format, {.part = part}) == expected);
  }
}

TEST_CASE("a cell that comes in many parts is not read again for each of them") {
  std::string bytes = "a,b\n\"";
  for (int i = 0; i < 100'000; ++i) bytes += "some words here\n";
  const Table table = parse_table(bytes + "\",x\n", "t", TableFormat::csv, {.part = 16});  // else it takes minutes
  CHECK(table.rows.front().cells[0].size() == 1'600'000);
}

TEST_CASE("rows that cannot be read can be left out and are named") {
  const auto check = [](const std::string& text, TableFormat format, const std::vector<std::string>& columns,
                        const std::vector<std::string>& messages) {
    const Table table = parse_table(text, "t", format, {.header = false, .skip_bad_rows = true});
    CHECK(table.rows.size() == 2);
    CHECK(table.columns == columns);
    std::vector<std::string> got;
    for (const SkippedRow& row : table.skipped) {
      CHECK(row.message.starts_with(fmt::format("t:{}: ", row.line)));
      got.push_back(row.message);
    }
    CHECK(got == messages);
  };
  check("1\t2\n3\n4\t5\n6\t7\t8\n", TableFormat::tsv, {},
        {"t:2: columns: expected 2 as in line 1, got 1", "t:4: columns: expected 2 as in line 1, got 3"});
  // What a bad row has for columns are none.
  check(
      "{\"a\": 1}\n{\"c\": \"x\\u0000\"}\n[]\n{\"a\": 2, \"a\": 2}\n{\"b\": 2}\n\n{\"\\u0000\": 1}\n{\"d\": "
      "\"\\u0000\"}\n",
      TableFormat::jsonl, {"a", "b"},
      {"t:2: expected text without \\u0000, got one", "t:3: expected a JSON object, got []",
       "t:4: \"a\": expected once, got it twice", "t:7: expected text without \\u0000, got one",
       "t:8: expected text without \\u0000, got one"});
}

TEST_CASE("a column is found by its name, else by its number from 0") {
  const Table table = parse_table("text\t0\nx\ty\n", "t", TableFormat::tsv);
  CHECK(table.find_column("text") == 0);
  CHECK(table.find_column("0") == 1);  // a name before a number
  CHECK(table.find_column("1") == 1);
  CHECK_FALSE(table.find_column("2"));
  CHECK_FALSE(table.find_column("-1"));
  CHECK_FALSE(table.find_column("1x"));
  CHECK_FALSE(table.find_column(""));
  CHECK_FALSE(parse_table("text\t\t\nx\ty\tz\n", "t", TableFormat::tsv).find_column(""));
}

TEST_CASE("the format follows from the extension") {
  CHECK(table_format("a/b.tsv") == TableFormat::tsv);
  CHECK(table_format("b.txt.gz") == TableFormat::tsv);
  CHECK(table_format("b.csv") == TableFormat::csv);
  CHECK(table_format("b.jsonl.gz") == TableFormat::jsonl);
  CHECK(table_format("b.csv.zst") == TableFormat::csv);
  CHECK(table_format("b.json") == TableFormat::jsonl);
  CHECK(table_format("b.ndjson") == TableFormat::jsonl);
  CHECK(table_format("B.CSV.GZ") == TableFormat::csv);
  for (const std::string name : {"tsv", "b.zst", "b.tsv.gz.zst", "b.tsv.xz"})
    CHECK_THROWS_AS(table_format(name), Error);
}

TEST_CASE("a file that is not there is named with the system's reason") {
  CHECK_THROWS_WITH_AS(read_table("/no/such/file.tsv"),
                       "/no/such/file.tsv: open: No such file or directory; hint: /no/such is no directory", Error);
}

TEST_CASE("JSON lines whose keys all differ take memory for their own keys alone") {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += fmt::format("{{\"k{}\": \"{}\"}}\n", i, i);
  const Table table = parse_table(lines, "t", TableFormat::jsonl);
  REQUIRE(table.rows.size() == 20'000);
  const std::vector<Row> rows = rows_of(table);
  CHECK(table.width == 20'000);
  CHECK(rows[7].cell(7) == "7");
  CHECK(rows[7].cell(8) == "");
  std::size_t cells = 0;
  for (const Row& row : rows) cells += row.cells.size();
  CHECK(cells == 20'000);
}

TEST_CASE("a table of Zstandard is read as the plain one, and refused if it is cut or becomes too much") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "t.tsv.zst";
  const std::string packed("(\xB5/\xFD\x04XA\0\0a\tb\n1\t2\n\xA6\xBEGw", 21);  // as zstd 1.5 writes it
  support::write_text(file, packed);
  const Table table = read_table(file);
  CHECK(table.columns == Cells{"a", "b"});
  CHECK(table.rows.front().cells == Cells{"1", "2"});
  CHECK(support::refusal(Failure::input, [&] { read_table(file, {.most_decompressed = 7}); }) ==
        file + ": expected at most 7 B after decompression, got more; hint: unpack it first");
  support::write_text(file, packed.substr(0, 18));
  CHECK(support::refusal(Failure::input, [&] { read_table(file); }) ==
        file + "@8: expected whole compressed data, got unexpected end of file");
}

TEST_CASE("a row that no memory should hold is refused with its line, whatever parts it comes in") {
  for (std::size_t part = 1; part < 10; ++part) {
    const TableOptions options{.longest_row = 9, .part = part};
    const auto refused = [&](std::string_view bytes, TableFormat format) {
      return message_of(bytes, format, options).ends_with(":3: expected a row of at most 9 bytes, got more");
    };
    CHECK(message_of("a\n123456789\nb\n", TableFormat::tsv, options) == "no error");
    CHECK(message_of("a\n\"12\n45\n7\"\nb\n", TableFormat::csv, options) == "no error");
    for (const TableFormat format : {TableFormat::tsv, TableFormat::csv}) {
      CHECK(refused("a\nb\n1234567890\nc\n", format));
      CHECK(refused("a\nb\n1234567890", format));
    }
    CHECK(refused("{}\n{}\n{\"a\": \"12345", TableFormat::jsonl));
    CHECK(refused("a\nb\n\"1\n2\n3\n4\n5\n6\n7\n8\n", TableFormat::csv));
    CHECK(message_of("a\n" + std::string(8, '\n') + "b\n", TableFormat::tsv, options) == "no error");
    CHECK(message_of("a\n" + std::string(20, '\n') + "b\n", TableFormat::tsv, options)
              .ends_with(": expected empty lines of at most 9 bytes, got more"));
  }
}

TEST_CASE("a gzip file that becomes more than it may is refused with what to do") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "t.tsv.gz";
  support::write_text(file, support::gzipped(std::string(100'000, 'x')));
  CHECK(read_table(file, {.most_decompressed = 100'000}).rows.empty());
  CHECK(support::refusal(bertrand::Failure::input, [&] { read_table(file, {.most_decompressed = 99'999}); }) ==
        file + ": expected at most 100 kB after decompression, got more; hint: unpack it first");
}

TEST_CASE("a table of empty lines alone has neither columns nor rows") {
  for (const TableFormat format : {TableFormat::tsv, TableFormat::csv, TableFormat::jsonl})
    for (const std::size_t part : {1, 100}) {
      const Table table = parse_table("\n\r\n\n", "t", format, {.part = part});
      CHECK(table.width == 0);
      CHECK(table.rows.empty());
    }
}
