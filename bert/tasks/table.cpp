// Tables read part by part.
#include "bert/tasks/table.h"

#include <algorithm>
#include <system_error>

#include "bert/tasks/table_formats.h"
#include "bert/text/utf8.h"
#include "io/byte_source.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/input_files.h"
#include "io/json.h"
#include "io/numbers.h"
#include "io/signals.h"

namespace bertrand::tasks {
namespace {

/// A table out of bytes that come in parts.
class TableReader {
 public:
  TableReader(const std::string& name, TableFormat format, const TableOptions& options)
      : table_{.file = name, .rows = RowList(options.spill)},
        format_(format),
        parser_(make_row_parser(format, table_, options)),
        longest_(options.longest_row) {}
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  void add(std::string_view bytes) {
    if (line_.size() + std::min(bytes.find('\n'), bytes.size()) > longest_) refuse("a row", lines_ + 1);
    const std::size_t end = bytes.rfind('\n') + 1;  // 0 if there is none
    line_.append(bytes.substr(0, end));
    if (end > 0) take_lines();
    line_.append(bytes.substr(end));
  }
  Table finish() {
    take_lines();
    while (text_.ends_with('\n') || text_.ends_with('\r')) text_.pop_back();
    if (lines_ == 0 && format_ != TableFormat::jsonl && text_.find('\r') != std::string::npos)
      fail(Failure::input, "{}:1: expected lines that end in LF or CRLF, got CR alone; hint: {}", table_.file,
           "tr '\\r' '\\n' <FILE >NEW");
    parser_->take(text_, gaps_, true);
    table_.rows.finish();
    return std::move(table_);
  }

 private:
  /// Takes whole lines that were not looked at yet.
  void take_lines() {
    io::leave_if_requested("reading a table");
    io::refuse_nul(line_, table_.file, lines_);
    const bool first = lines_ == 0;
    const std::uint64_t lines = lines_;
    lines_ += static_cast<std::uint64_t>(std::ranges::count(line_, '\n'));
    if (format_ != TableFormat::jsonl) drop_invalid(lines);
    text_ += line_;
    line_.clear();
    if (first && text_.starts_with("\xEF\xBB\xBF")) erase_beginning(3);
    take_rows();
  }

  /// Leaves out of `line_` what is no UTF-8, before quotes and empty lines are looked for.
  void drop_invalid(std::uint64_t lines_before) {
    std::string valid;
    std::vector<std::size_t> gaps;
    const text::InvalidBytes invalid = text::drop_invalid_lines(line_, valid, &gaps);
    if (invalid.count == 0) return;
    table_.invalid.add(invalid, lines_before);
    line_ = std::move(valid);
    for (const std::size_t gap : gaps) gaps_.push_back(text_.size() + gap);
  }

  void erase_beginning(std::size_t bytes) {
    text_.erase(0, bytes);
    gaps_.erase(gaps_.begin(), std::ranges::lower_bound(gaps_, bytes));
    for (std::size_t& gap : gaps_) gap -= bytes;
  }

  /// Empty lines are kept back, as those at the end do not count.
  void take_rows() {
    // A long row is not read again for each part of it, for speed alone.
    if (text_.size() < 2 * unfinished_ && text_.size() <= longest_) return;
    const std::size_t some = text_.find_last_not_of("\r\n");
    if (text_.size() - (some + 1) > longest_) refuse("empty lines", lines_);
    if (some == std::string::npos) return;
    const std::size_t whole = text_.rfind('\n', some) + 1;
    const std::size_t taken = parser_->take(std::string_view(text_).substr(0, whole), gaps_, false);
    erase_beginning(taken);
    unfinished_ = taken > 0 ? 0 : text_.size();
    // What is left of it is a row that goes on.
    if (whole - taken > longest_)
      refuse("a row", lines_ - static_cast<std::uint64_t>(std::ranges::count(text_, '\n')) + 1);
  }

  [[noreturn]] void refuse(const char* what, std::uint64_t line) const {
    fail(Failure::input, "{}:{}: expected {} of at most {} bytes, got more", table_.file, line, what, longest_);
  }

  Table table_;
  const TableFormat format_;
  std::unique_ptr<RowParser> parser_;  // writes into the table
  const std::size_t longest_;          // bytes of a row
  std::string line_;                   // as it came
  std::string text_;                   // valid lines that are in no row yet
  std::vector<std::size_t> gaps_;      // of `text_`, where something was left out
  std::uint64_t lines_ = 0;            // that came before
  std::size_t unfinished_ = 0;         // bytes of a row, when its end was looked for the last time
};

}  // namespace

TableFormat table_format(const std::string& path) {
  const std::string extension = io::plain_extension(path);
  if (extension == ".tsv" || extension == ".txt") return TableFormat::tsv;
  if (extension == ".csv") return TableFormat::csv;
  if (io::is_json_lines(path)) return TableFormat::jsonl;
  fail(Failure::usage,
       "{}: format: expected a name that ends in .tsv, .txt, .csv, .jsonl, .ndjson or .json (or one of these and .gz "
       "or .zst), got another; hint: files of words are for --task ner, pos, punct or tokens",
       path);
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
  const auto number = io::number_in<std::size_t>(name_or_number);
  return number && *number < width ? number : std::nullopt;
}

std::string Table::where(const Row& row) const { return fmt::format("{}:{}", file, row.line); }

Table parse_table(std::string_view bytes, const std::string& name, TableFormat format, const TableOptions& options) {
  TableReader reader(name, format, options);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(options.part, bytes.size())))
    reader.add(bytes.substr(0, options.part));
  return reader.finish();
}

Table read_table(const std::string& path, const TableOptions& options) {
  TableReader reader(path, table_format(path), options);
  io::ByteSource source(path, "rows");
  std::string bytes(options.part, '\0');
  std::uint64_t sum = 0;
  for (std::size_t got = bytes.size(); got == bytes.size(); sum += got) {
    got = source.read(bytes.data(), bytes.size());
    if (source.is_compressed()) io::check_decompressed(path, sum + got, options.most_decompressed);
    reader.add(std::string_view(bytes).substr(0, got));
  }
  if (!source.damage().empty())
    fail(Failure::input, "{}@{}: expected whole compressed data, got {}", path, sum, source.damage());
  return reader.finish();
}

}  // namespace bertrand::tasks
