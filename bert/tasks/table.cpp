// The three formats, row by row.
#include "bert/tasks/table.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <unordered_map>

#include "bert/text/utf8.h"
#include "io/error.h"
#include "io/input_files.h"
#include "io/json.h"

namespace bertrand::tasks {
namespace {

bool has_extension(std::string_view path, std::string_view extension) {
  return path.size() > extension.size() && path.ends_with(extension);
}

std::string read_whole_file(const std::string& path, std::uint64_t most_decompressed) {
  io::ByteSource source(path, "rows");
  constexpr std::size_t kPart = std::size_t{1} << 20;
  std::string bytes;
  for (std::size_t got = kPart; got == kPart;) {
    const std::size_t begin = bytes.size();
    if (bytes.capacity() < begin + kPart) bytes.reserve(2 * (begin + kPart));
    bytes.resize(begin + kPart);
    got = source.read(bytes.data() + begin, kPart);
    bytes.resize(begin + got);
    if (source.is_compressed()) io::check_decompressed(path, bytes.size(), most_decompressed);
  }
  if (!source.damage().empty())
    fail(Failure::input, "{}@{}: gzip: expected a whole stream, got {}", path, bytes.size(), source.damage());
  return bytes;
}

/// Takes the next line off `rest`, without its LF or CRLF.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// A row and the checks that every format shares: each has as many cells as the first.
class Collector {
 public:
  Collector(Table& table, const TableOptions& options) : table_(table), options_(options) {}

  void add(std::vector<std::string> cells, std::int64_t line) {
    if (table_.width == 0) {
      table_.width = cells.size();
      if (options_.header) {
        table_.columns = std::move(cells);
        return;
      }
    }
    if (cells.size() != table_.width) {
      if (!options_.skip_ragged_rows)
        fail(Failure::input, "{}:{}: columns: expected {} as in line 1, got {}", table_.file, line, table_.width,
             cells.size());
      table_.skipped_lines.push_back(line);
      return;
    }
    table_.rows.push_back({.cells = std::move(cells), .line = line});
  }

 private:
  Table& table_;
  const TableOptions& options_;
};

void parse_tsv(std::string_view bytes, Collector& rows) {
  std::int64_t number = 0;
  while (!bytes.empty()) {
    std::string_view line = take_line(bytes);
    ++number;
    std::vector<std::string> cells;
    for (std::size_t tab = line.find('\t'); tab != std::string_view::npos; tab = line.find('\t')) {
      cells.emplace_back(line.substr(0, tab));
      line.remove_prefix(tab + 1);
    }
    cells.emplace_back(line);
    rows.add(std::move(cells), number);
  }
}

/// RFC 4180. A quote that is not a cell's first character is an ordinary one, as spreadsheets and Python read it.
class CsvParser {
 public:
  CsvParser(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  void run(Collector& rows) {
    while (at_ < bytes_.size()) {
      const std::int64_t first_line = line_;
      std::vector<std::string> cells;
      do cells.push_back(peek() == '"' ? quoted_cell() : plain_cell());
      while (take_comma());
      rows.add(std::move(cells), first_line);
    }
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

  std::string quoted_cell() {
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
    fail(Failure::input, "{}:{}: quoted cell: expected a closing quote, got the end of the file", file_, opened);
  }

  void check_cell_end() const {
    if (at_row_end() || bytes_[at_] == ',') return;
    fail(Failure::input, "{}:{}: quoted cell: expected a comma or the row's end after its closing quote, got \"{}\"",
         file_, line_, bytes_[at_]);
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

/// A JSON value as a cell.
std::string cell_of(const io::Json& value, const std::string& separator, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  if (!value.is_array()) return io::json_text(value);
  std::string joined;
  for (const auto& item : value) {
    const std::string text = cell_of(item, separator, where);
    if (text.find(separator) != std::string::npos)
      fail(Failure::input, "{}: expected items without the label separator \"{}\", got {}", where, separator,
           io::json_text(text));
    if (!joined.empty()) joined += separator;
    joined += text;
  }
  return joined;
}

/// A line as an object whose values are strings, numbers, or lists of them.
io::Json parse_object(std::string_view line, const std::string& where) {
  if (is_blank(line)) fail(Failure::input, "{}: expected a JSON object, got an empty line", where);
  io::Json object = io::parse_json(line, {where, Failure::input});
  const io::JsonReader reader(object, {where, Failure::input});
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) reader.refuse(key, "a string, a number or a list of them", &value);
    if (!value.is_array()) continue;
    for (const io::Json& item : value)
      if (item.is_structured()) reader.refuse(key, "a list of strings or numbers", &value);
  }
  return object;
}

[[noreturn]] void refuse_nul(const std::string& where) {
  fail(Failure::input, "{}: expected text without \\u0000, got one", where);
}

/// The columns are all keys that occur; a key that an object lacks is an empty cell.
void parse_jsonl(std::string_view bytes, Table& table, const TableOptions& options) {
  std::unordered_map<std::string, std::size_t> columns;
  std::int64_t number = 0;
  while (!bytes.empty()) {
    const std::string_view line = take_line(bytes);
    Row row{.cells = {}, .line = ++number};
    const std::string where = table.where(row);
    const io::Json object = parse_object(line, where);
    std::vector<std::pair<std::size_t, const io::Json*>> values;  // in the order of the columns
    for (const auto& [key, value] : object.items()) {
      const auto [column, is_new] = columns.emplace(key, columns.size());
      if (is_new) table.columns.push_back(key);
      if (key.find('\0') != std::string::npos) refuse_nul(where);
      values.emplace_back(column->second, &value);
    }
    std::ranges::sort(values);
    for (const auto& [column, value] : values) {
      row.columns.push_back(column);
      row.cells.push_back(cell_of(*value, options.list_separator, where + ": " + table.columns[column]));
      if (row.cells.back().find('\0') != std::string::npos) refuse_nul(where);
      if (value->is_array()) row.lists.push_back(column);
    }
    table.rows.push_back(std::move(row));
  }
  table.width = table.columns.size();
}

}  // namespace

TableFormat table_format(const std::string& path) {
  std::string_view name = path;
  if (has_extension(name, ".gz")) name.remove_suffix(3);
  if (has_extension(name, ".tsv") || has_extension(name, ".txt")) return TableFormat::tsv;
  if (has_extension(name, ".csv")) return TableFormat::csv;
  if (has_extension(name, ".jsonl")) return TableFormat::jsonl;
  fail(Failure::usage,
       "{}: format: expected a name that ends in .tsv, .txt, .csv or .jsonl (or one of these and .gz), got another; "
       "hint: files of words are for --task ner, pos, punct or tokens",
       path);
}

const std::string& Row::cell(std::size_t column) const {
  static const std::string kNone;
  if (columns.empty()) return column < cells.size() ? cells[column] : kNone;
  const auto found = std::ranges::lower_bound(columns, column);
  return found != columns.end() && *found == column ? cells[static_cast<std::size_t>(found - columns.begin())] : kNone;
}

std::optional<std::size_t> Table::find_column(std::string_view name_or_number) const {
  if (name_or_number.empty()) return std::nullopt;  // a header may end in tabs
  const auto named = std::find(columns.begin(), columns.end(), name_or_number);
  if (named != columns.end()) {
    if (std::find(named + 1, columns.end(), name_or_number) != columns.end())
      fail(Failure::input, "{}:1: columns: expected one of the name {}, got two; hint: a number names one of them",
           file,
           io::json_text(name_or_number));  // a quoted name may have several lines
    return static_cast<std::size_t>(named - columns.begin());
  }
  std::size_t number = 0;
  const char* end = name_or_number.data() + name_or_number.size();
  const auto [stop, error] = std::from_chars(name_or_number.data(), end, number);
  if (error != std::errc() || stop != end || number >= width) return std::nullopt;
  return number;
}

std::string Table::where(const Row& row) const { return fmt::format("{}:{}", file, row.line); }

Table parse_table(std::string_view bytes, const std::string& name, TableFormat format, const TableOptions& options) {
  io::refuse_nul(bytes, name);
  Table table{.file = name};
  std::string valid;
  table.invalid = text::drop_invalid_lines(bytes, valid);
  if (table.invalid.count > 0) bytes = valid;
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  while (bytes.ends_with('\n') || bytes.ends_with('\r')) bytes.remove_suffix(1);
  Collector rows(table, options);
  switch (format) {
    case TableFormat::tsv: parse_tsv(bytes, rows); break;
    case TableFormat::csv: CsvParser(bytes, name).run(rows); break;
    case TableFormat::jsonl: parse_jsonl(bytes, table, options); break;
  }
  return table;
}

Table read_table(const std::string& path, const TableOptions& options) {
  const TableFormat format = table_format(path);
  return parse_table(read_whole_file(path, options.most_decompressed), path, format, options);
}

}  // namespace bertrand::tasks
