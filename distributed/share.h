// Who works on which part of a list.
#pragma once
#include <algorithm>
#include <cstdint>

namespace bertrand::distributed {

/// The items [first, first + count).
struct Share {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
};

/// What one of `size` replicas works on: `items` items cut into even pieces, the longer ones first.
inline Share share_of(std::int64_t items, int rank, int size) {
  const std::int64_t even = items / size, longer = items % size;
  return {.first = rank * even + std::min<std::int64_t>(rank, longer), .count = even + (rank < longer)};
}

}  // namespace bertrand::distributed
