// Rows as bytes: numbers of variable length, and the cells as they are.
#include "bert/tasks/row_list.h"

#include <algorithm>

#include "io/little_endian.h"

namespace bertrand::tasks {
namespace {

constexpr std::size_t kLetGo = std::size_t{1} << 24;  // bytes that are looked at before memory is given back

/// The next number in bytes that add() wrote.
std::uint64_t take_number(const char*& at) {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    number |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return number;
  }
}

void add_numbers(std::string& to, const std::vector<std::size_t>& numbers) {
  io::append_varint(to, numbers.size());
  for (const std::size_t number : numbers) io::append_varint(to, number);
}

void take_numbers(const char*& at, std::vector<std::size_t>& numbers) {
  numbers.resize(take_number(at));
  for (std::size_t& number : numbers) number = take_number(at);
}

/// Into a row whose memory is used again.
void take_row(const char*& at, Row& row) {
  row.line = static_cast<std::int64_t>(take_number(at));
  take_numbers(at, row.columns);
  take_numbers(at, row.lists);
  take_numbers(at, row.nested);
  take_numbers(at, row.invalid);
  row.cells.resize(take_number(at));
  for (std::string& cell : row.cells) {
    const std::uint64_t size = take_number(at);
    cell.assign(at, size);
    at += size;
  }
}

}  // namespace

const std::string& Row::cell(std::size_t column) const {
  static const std::string kNone;
  if (columns.empty()) return column < cells.size() ? cells[column] : kNone;
  const auto found = std::ranges::lower_bound(columns, column);
  return found != columns.end() && *found == column ? cells[static_cast<std::size_t>(found - columns.begin())] : kNone;
}

void RowList::add(const Row& row) {
  row_.clear();
  io::append_varint(row_, static_cast<std::uint64_t>(row.line));
  add_numbers(row_, row.columns);
  add_numbers(row_, row.lists);
  add_numbers(row_, row.nested);
  add_numbers(row_, row.invalid);
  io::append_varint(row_, row.cells.size());
  for (const std::string& cell : row.cells) {
    io::append_varint(row_, cell.size());
    row_ += cell;
  }
  bytes_.append(row_);
  ++size_;
  bytes_.spill_if_due(place_);
}

void RowList::for_each(const std::function<void(const Row&)>& use) const {
  const std::span<const char> bytes = bytes_.all();
  const char *at = bytes.data(), *let_go = at;
  Row row;
  for (std::size_t i = 0; i < size_; ++i) {
    take_row(at, row);
    use(row);
    if (static_cast<std::size_t>(at - let_go) < kLetGo) continue;  // for speed alone
    bytes_.let_go();                                               // for memory alone
    let_go = at;
  }
  bytes_.let_go();  // for memory alone
}

Row RowList::front() const {
  const char* at = bytes_.all().data();
  Row row;
  take_row(at, row);
  return row;
}

}  // namespace bertrand::tasks
