// The three formats of tables, read as their bytes come.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "bert/tasks/table.h"

namespace bertrand::tasks {

/// Reads the rows of one format into a table.
class RowParser {
 public:
  virtual ~RowParser() = default;
  /// Takes rows off `text`, which are lines with their ends; the file's last one, if `last`, has none. Returns how many
  /// bytes: not those of a row that goes on after the text.
  virtual std::size_t take(std::string_view text, bool last) = 0;
};

/// The table and the options must outlive it.
std::unique_ptr<RowParser> make_row_parser(TableFormat format, Table& table, const TableOptions& options);

}  // namespace bertrand::tasks
