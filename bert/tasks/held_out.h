// --eval-split: a part of the file to train on that is kept to evaluate on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::tasks {

struct HeldOut {
  double share = 0;  ///< of all rows; 0: nothing is held out
  std::uint64_t seed = 0;
};

/// Which rows are held out, a function of the seed and of how many rows there are of each group. Of rows of one group
/// (a label) about `share` are; the first of each group that is drawn is not, so that something of it is learnt.
/// Throws Failure::input, naming `file`, if
/// that is no row.
std::vector<bool> held_out(std::span<const std::string_view> groups, const HeldOut& part, const std::string& file);

/// Moves the marked rows out of `rows`, in their order.
template <class Row>
std::vector<Row> take_marked(std::vector<Row>& rows, const std::vector<bool>& marked) {
  std::vector<Row> taken, kept;
  for (std::size_t i = 0; i < rows.size(); ++i) (marked[i] ? taken : kept).push_back(std::move(rows[i]));
  rows = std::move(kept);
  return taken;
}

}  // namespace bertrand::tasks
