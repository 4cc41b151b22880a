#include "bert/tasks/held_out.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "io/error.h"
#include "tensor/random.h"

namespace bertrand::tasks {

std::vector<bool> held_out(std::span<const std::int32_t> groups, const HeldOut& part, const std::string& file) {
  const std::uint64_t key = mix(part.seed, hash_name("eval-split"));
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(groups[i], mix(key, i), i); });
  std::vector<bool> marked(groups.size());
  double due = 0.5;  // so that the total is rounded to the nearest
  std::size_t count = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    due += part.share;
    const bool first = i == 0 || groups[order[i]] != groups[order[i - 1]];
    // The first row of a label stays. Many labels with one row must not leave their shares to the next one.
    if (first) due = std::min(due, 1 + part.share);
    if (due < 1 || first) continue;
    due -= 1;
    marked[order[i]] = true;
    ++count;
  }
  if (count == 0)
    fail(Failure::input, "{}: --eval-split: expected at least one row to evaluate on, got none of {}", file,
         groups.size());
  return marked;
}

}  // namespace bertrand::tasks
