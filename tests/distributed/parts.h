// Numbers to add up whose sum shows in which order they were.
#pragma once
#include <vector>

#include "distributed/replica.h"
#include "tensor/ops.h"

namespace bertrand::testing {

inline float part(std::int64_t number, Dim element) { return 1.0f / static_cast<float>(3 + 7 * number + element % 11); }

/// The sum of parts [first, first + count) as the tree defines it: halves that are powers of two on the left.
inline float tree(std::int64_t first, std::int64_t count, Dim element) {
  if (count == 1) return part(first, element);
  std::int64_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree(first, left, element) + tree(first + left, count - left, element);
}

/// This replica's parts, each an addend of its own.
inline std::vector<distributed::Addend> parts_of(const distributed::Replica& self, std::int64_t parts, Dim elements) {
  std::vector<distributed::Addend> addends;
  const distributed::Share mine = distributed::share_of(parts, self.rank(), self.size());
  for (std::int64_t i = mine.first; i < mine.end(); ++i) {
    std::vector<float> values;
    for (Dim e = 0; e < elements; ++e) values.push_back(part(i, e));
    addends.push_back({.first = i, .count = 1, .values = ops::from_host(values, {elements}, self.backend())});
  }
  return addends;
}

}  // namespace bertrand::testing
