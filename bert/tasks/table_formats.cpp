// The three formats, row by row.
#include "bert/tasks/table_formats.h"

#include <algorithm>
#include <map>

#include "io/error.h"
#include "io/json.h"

namespace bertrand::tasks {
namespace {

/// Takes the next line off `rest`, without its LF or CRLF.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Whether a spreadsheet has put the cell in quotes: it doubles those within.
bool is_quoted(std::string_view cell) {
  if (cell.size() < 4 || !cell.starts_with('"') || !cell.ends_with('"')) return false;
  cell = cell.substr(1, cell.size() - 2);
  bool has_quotes = false;
  for (std::size_t at; (at = cell.find('"')) != std::string_view::npos; has_quotes = true) {
    if (!cell.substr(at).starts_with("\"\"")) return false;
    cell.remove_prefix(at + 2);
  }
  return has_quotes;
}

/// A row and the checks that every format shares: each has as many cells as the first.
class Collector {
 public:
  Collector(Table& table, const TableOptions& options) : table_(table), options_(options) {}

  /// The hint is for a row with another number of cells.
  void add(const Row& row, const char* hint = "") {
    if (table_.width == 0) {
      table_.width = row.cells.size();
      if (options_.header) {
        table_.columns = row.cells;
        table_.invalid_columns = row.invalid;
        return;
      }
    }
    if (row.cells.size() != table_.width) {
      const std::string message =
          fmt::format("{}: columns: expected {} as in line 1, got {}{}", table_.where(row), table_.width,
                      row.cells.size(), *hint != '\0' ? hint : hint_of_separator(table_));
      if (!options_.skip_bad_rows) fail(Failure::input, "{}", message);
      table_.skipped.push_back({row.line, message});
      return;
    }
    table_.rows.add(row);
  }
  void note_quoted(const Row& row) {
    if (table_.quoted_line == 0) table_.quoted_line = row.line;
  }
  const std::string& file() const { return table_.file; }

 private:
  Table& table_;
  const TableOptions& options_;
};

class TsvParser : public RowParser {
 public:
  explicit TsvParser(Collector rows) : rows_(rows) {}

  std::size_t take(std::string_view text, std::span<const std::size_t> gaps, bool) override {
    for (std::string_view rest = text; !rest.empty();) {
      auto at = static_cast<std::size_t>(rest.data() - text.data());
      std::string_view line = take_line(rest);
      ++row_.line;
      row_.invalid.clear();
      row_.cells.resize(static_cast<std::size_t>(std::ranges::count(line, '\t')) + 1);
      bool begins_with_quote = false;
      for (std::size_t i = 0; i < row_.cells.size(); ++i) {
        std::string& cell = row_.cells[i];
        cell = line.substr(0, line.find('\t'));
        line.remove_prefix(std::min(cell.size() + 1, line.size()));
        if (text::has_gap(gaps, at, at + cell.size())) row_.invalid.push_back(i);
        at += cell.size() + 1;
        if (!cell.starts_with('"')) continue;
        begins_with_quote = true;
        if (is_quoted(cell)) rows_.note_quoted(row_);
      }
      rows_.add(row_, begins_with_quote ? "; hint: .tsv has no quoted cells; save the table as .csv" : "");
    }
    return text.size();
  }

 private:
  Collector rows_;
  Row row_;
};

/// RFC 4180. A quote that is not a cell's first character is an ordinary one, as spreadsheets and Python read it.
class CsvParser : public RowParser {
 public:
  explicit CsvParser(Collector rows) : rows_(rows) {}

  std::size_t take(std::string_view text, std::span<const std::size_t> gaps, bool last) override {
    bytes_ = text;
    at_ = 0;
    while (at_ < bytes_.size()) {
      const std::size_t begin = at_;
      Row row{.cells = {}, .line = line_};
      std::optional<std::string> cell;
      do {
        const std::size_t cell_begin = at_;
        cell = peek() == '"' ? quoted_cell(last) : plain_cell();
        if (!cell) {
          line_ = row.line;
          return begin;
        }
        if (text::has_gap(gaps, cell_begin, at_)) row.invalid.push_back(row.cells.size());
        row.cells.push_back(*std::move(cell));
      } while (take_comma());
      rows_.add(row);
    }
    return text.size();
  }

 private:
  char peek() const { return at_ < bytes_.size() ? bytes_[at_] : '\n'; }

  /// After a cell: true if another follows in this row; takes the row's end if not.
  bool take_comma() {
    if (at_ >= bytes_.size()) return false;
    if (bytes_[at_] == ',') return ++at_, true;
    if (bytes_[at_] == '\r') ++at_;
    ++at_;  // the LF
    ++line_;
    return false;
  }

  bool at_row_end() const { return at_ >= bytes_.size() || bytes_[at_] == '\n' || bytes_.substr(at_, 2) == "\r\n"; }

  std::string plain_cell() {
    const std::size_t begin = at_;
    while (!at_row_end() && bytes_[at_] != ',') ++at_;
    return std::string(bytes_.substr(begin, at_ - begin));
  }

  /// Nothing if the cell goes on after the text.
  std::optional<std::string> quoted_cell(bool last) {
    const std::int64_t opened = line_;
    std::string cell;
    ++at_;
    while (at_ < bytes_.size()) {
      const char c = bytes_[at_++];
      if (c == '"') {
        if (peek() != '"') return check_cell_end(), cell;
        ++at_;
      }
      if (c == '\n') ++line_;
      cell += c;
    }
    if (!last) return std::nullopt;
    fail(Failure::input, "{}:{}: quoted cell: expected a closing quote, got the end of the file", rows_.file(), opened);
  }

  void check_cell_end() const {
    if (at_row_end() || bytes_[at_] == ',') return;
    fail(Failure::input, "{}:{}: quoted cell: expected a comma or the row's end after its closing quote, got \"{}\"",
         rows_.file(), line_, bytes_[at_]);
  }

  Collector rows_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

/// A JSON value as a cell; of one that is none its JSON.
struct JsonCell {
  std::string text;
  bool is_list = false, is_nested = false;
};

JsonCell cell_of(const io::Json& value, const std::string& separator) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  if (value.is_null()) return {};
  JsonCell cell{.text = io::json_text(value), .is_list = value.is_array(), .is_nested = value.is_object()};
  if (!cell.is_list) return cell;
  std::string joined;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string text = cell_of(value[i], separator).text;
    cell.is_nested |= value[i].is_structured() || text.find(separator) != std::string::npos;
    joined += (i == 0 ? "" : separator) + text;
  }
  if (!cell.is_nested) cell.text = std::move(joined);
  return cell;
}

/// The columns are all keys that occur; a key that an object lacks is an empty cell.
class JsonParser : public RowParser {
 public:
  JsonParser(Table& table, const TableOptions& options) : table_(table), options_(options) {}

  std::size_t take(std::string_view text, std::span<const std::size_t>, bool) override {
    if (number_ == 0) refuse_list_of_rows(text, table_.file);
    for (std::string_view rest = text; !rest.empty();) add(take_line(rest));
    table_.width = table_.columns.size();
    return text.size();
  }

 private:
  struct Cell : JsonCell {
    std::size_t column = 0;
  };

  void add(std::string_view line) {
    Row row{.cells = {}, .line = ++number_};
    if (is_blank(line)) return;
    try {
      for (Cell& cell : cells_of(line, table_.where(row))) {
        row.columns.push_back(cell.column);
        row.cells.push_back(std::move(cell.text));
        if (cell.is_list) row.lists.push_back(cell.column);
        if (cell.is_nested) row.nested.push_back(cell.column);
      }
    } catch (const Error& error) {
      if (error.failure() != Failure::input || !options_.skip_bad_rows) throw;
      table_.skipped.push_back({row.line, error.what()});
      return;
    }
    table_.rows.add(row);
  }

  /// In the order of the columns, of which a bad line adds none.
  std::vector<Cell> cells_of(std::string_view line, const std::string& where) {
    const io::Json object = parse_object(line, where);
    std::vector<Cell> cells;
    for (const auto& [key, value] : object.items()) cells.push_back({cell_of(value, options_.list_separator)});
    auto cell = cells.begin();
    for (const auto& [key, value] : object.items()) {
      const auto [column, is_new] = columns_.emplace(key, columns_.size());
      if (is_new) table_.columns.push_back(key);
      (cell++)->column = column->second;
    }
    std::ranges::sort(cells, {}, &Cell::column);
    return cells;
  }

  Table& table_;
  const TableOptions& options_;
  std::map<std::string, std::size_t> columns_;  // no hash: keys that collide could be made
  std::int64_t number_ = 0;
};

}  // namespace

io::Json parse_object(std::string_view line, const std::string& where) {
  try {
    io::Json object = io::parse_json(line, {where, Failure::input, io::LongNumber::text});
    io::JsonReader(object, {where, Failure::input});  // refuses what is none
    return object;
  } catch (const Error& error) {
    if (std::string ignored; text::drop_invalid_utf8(line, ignored).count == 0) throw;
    fail_with_hint(error, "iconv turns other encodings into UTF-8");
  }
}

void refuse_list_of_rows(std::string_view beginning, const std::string& file) {
  if (beginning.starts_with('['))
    fail(Failure::input,
         "{}:1: expected a JSON object in each line, got a list; hint: jq -c '.[]' FILE writes its items as lines",
         file);
}

std::string hint_of_separator(const Table& table) {
  const bool is_whole_row = table.columns.size() == 1 && table.columns[0].find_first_of(",;|\t") != std::string::npos;
  return is_whole_row ? "; hint: a .csv has commas between its cells, a .tsv or .txt has tabs" : "";
}

std::unique_ptr<RowParser> make_row_parser(TableFormat format, Table& table, const TableOptions& options) {
  const Collector rows(table, options);
  switch (format) {
    case TableFormat::tsv: return std::make_unique<TsvParser>(rows);
    case TableFormat::csv: return std::make_unique<CsvParser>(rows);
    case TableFormat::jsonl: return std::make_unique<JsonParser>(table, options);
  }
  fail(Failure::bug, "table: no such format");
}

}  // namespace bertrand::tasks
