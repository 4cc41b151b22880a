// Rows of text out of the three kinds of table that labelled data comes in: TSV, CSV and JSON lines.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/row_list.h"
#include "bert/text/utf8.h"
#include "io/line_source.h"

namespace bertrand::tasks {

enum class TableFormat {
  tsv,   ///< a row a line, cells between tabs; a quote is an ordinary character, as the GLUE files need it
  csv,   ///< RFC 4180: quoted cells may hold commas, doubled quotes and line ends
  jsonl  ///< an object a line; its keys are the columns
};

/// From the extension, in capitals or not: .tsv and .txt, .csv, and .jsonl, .ndjson and .json; each may end in .gz or
/// .zst. Throws Failure::usage for any other.
TableFormat table_format(const std::string& path);

struct TableOptions {
  bool header = true;                ///< the first row names the columns (always so in JSON lines)
  bool skip_bad_rows = false;        ///< leave out rows with another number of cells, and no JSON, instead of failing
  std::string list_separator = ",";  ///< what joins the items if a JSON value is a list
  std::uint64_t most_decompressed = io::kMostDecompressed;  ///< bytes that a compressed file may become
  std::size_t longest_row = io::LineSource::kLongest;       ///< bytes of a line, and of a quoted row of many lines
  io::SpillPlace spill = {};                                ///< where rows go that are more than memory should hold
  std::size_t part = std::size_t{1} << 20;                  ///< bytes that are read at once
};

/// A row that was left out. The message begins with file and line.
struct SkippedRow {
  std::int64_t line = 0;
  std::string message;
};

struct Table {
  std::string file;                               ///< as the messages name it
  std::vector<std::string> columns;               ///< their names; empty without a header
  std::vector<std::size_t> invalid_columns = {};  ///< those whose name has lost bytes that are not UTF-8
  std::size_t width = 0;                          ///< columns
  RowList rows;
  std::vector<SkippedRow> skipped;
  text::InvalidBytes invalid;    ///< that were dropped, or are in rows that were left out
  std::int64_t quoted_line = 0;  ///< of TSV: the first with a cell that a spreadsheet has quoted; 0: none

  /// The column of this name, which is not "", or, failing that, with this number from 0. Throws Failure::input if two
  /// have the name.
  std::optional<std::size_t> find_column(std::string_view name_or_number) const;
  /// "file:line", for messages.
  std::string where(const Row& row) const;
};

/// Reads a table part by part; gzip and Zstandard are seen by their first bytes. A row of JSON lines takes memory for
/// its own keys alone. A byte order mark is dropped, and CRLF ends a line as LF does; empty lines at the end do not
/// count. What is no UTF-8 is dropped from TSV and CSV before rows and cells are told apart. Throws Failure::io if the
/// file cannot be read, Failure::input if it is not there, a directory, or unpacks to too much, and with file and line
/// for a row that is too long or has another number of cells than the first, a NUL, an open quote, or JSON that is not
/// an object in UTF-8 whose keys differ, and for a TSV or CSV whose lines end in CR alone.
Table read_table(const std::string& path, const TableOptions& options = {});

/// The same of bytes at hand; `name` stands for the file in messages.
Table parse_table(std::string_view bytes, const std::string& name, TableFormat format,
                  const TableOptions& options = {});

}  // namespace bertrand::tasks
