// --eval-split: a part of the file to train on that is kept to evaluate on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bertrand::tasks {

struct HeldOut {
  double share = 0;  ///< of all rows; 0: nothing is held out
  std::uint64_t seed = 0;
};

/// Which rows are held out, a function of the seed and of how many rows there are of each group. `groups` has the
/// number of each row's. Of rows of one group (a label) about `share` are; the first of each group that is drawn is
/// not, so that something of it is learnt. Throws Failure::input, naming `file`, if that is no row.
std::vector<bool> held_out(std::span<const std::int32_t> groups, const HeldOut& part, const std::string& file);

}  // namespace bertrand::tasks
