// The three formats of tables, read as their bytes come.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bert/tasks/table.h"
#include "io/json.h"

namespace bertrand::tasks {

/// Whether a text has nothing but white space of ASCII.
inline bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// Reads the rows of one format into a table.
class RowParser {
 public:
  virtual ~RowParser() = default;
  /// Takes rows off `text`, which are lines with their ends; the file's last one, if `last`, has none. Returns how many
  /// bytes: not those of a row that goes on after the text. `gaps` are the offsets in the text, ascending, at which
  /// something was left out.
  virtual std::size_t take(std::string_view text, std::span<const std::size_t> gaps, bool last) = 0;
};

/// A line of JSON lines as an object. A long number may be an id: it is not rounded. Throws Failure::input, beginning
/// with `where`, if it is none.
io::Json parse_object(std::string_view line, const std::string& where);
/// Throws Failure::input if JSON lines begin with a list: the file is one.
void refuse_list_of_rows(std::string_view beginning, const std::string& file);

/// A hint if the only column's name is a row of another format; else "".
std::string hint_of_separator(const Table& table);

/// The table and the options must outlive it.
std::unique_ptr<RowParser> make_row_parser(TableFormat format, Table& table, const TableOptions& options);

}  // namespace bertrand::tasks
