// The rows of a table, in memory or on the disk.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/spillable.h"

namespace bertrand::tasks {

struct Row {
  std::vector<std::string> cells;
  std::vector<std::size_t> columns = {};  ///< of the cells, ascending; empty: 0, 1, 2, …
  std::int64_t line = 0;                  ///< in the file, from 1; of a CSV row over several lines the first
  std::vector<std::size_t> lists = {};    ///< the columns whose value in JSON was a list
  std::vector<std::size_t> nested = {};   ///< those whose value is no cell: an object, a list of lists
  std::vector<std::size_t> invalid = {};  ///< those whose cell has lost bytes that are not UTF-8

  /// The cell of a column; an empty one if the row has none there.
  const std::string& cell(std::size_t column) const;
};

/// Rows are added, then walked through.
class RowList {
 public:
  /// What is more than `place` says goes to the disk.
  explicit RowList(const io::SpillPlace& place = {}) : place_(place) {}

  /// Throws Failure::io if the disk is full.
  void add(const Row& row);
  /// After the last row.
  void finish() { bytes_.finish(place_); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool is_spilled() const { return bytes_.is_spilled(); }
  std::size_t held_bytes() const { return bytes_.held_bytes(); }  ///< in memory
  /// Calls `use` for each row, in order; the row is valid until it returns.
  void for_each(const std::function<void(const Row&)>& use) const;
  Row front() const;

 private:
  io::Spillable<char> bytes_;
  std::string row_;  // as it goes there
  std::size_t size_ = 0;
  io::SpillPlace place_;
};

}  // namespace bertrand::tasks
