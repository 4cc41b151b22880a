// Which replica works on which items of a list.
#pragma once
#include <algorithm>
#include <cstdint>

#include "tensor/shape.h"

namespace bertrand::distributed {

/// The items [first, first + count).
struct Share {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
};

/// What replica `rank` of `size` works on: `items` items are cut into even shares, the longer ones first.
inline Share share_of(std::int64_t items, int rank, int size) {
  const std::int64_t even = items / size, longer = items % size;
  return {.first = rank * even + std::min<std::int64_t>(rank, longer), .count = even + (rank < longer)};
}

/// share_of `elements` elements in whole vectors.
inline Share share_of_elements(std::int64_t elements, int rank, int size) {
  const Share vectors = share_of((elements + kVectorElements - 1) / kVectorElements, rank, size);
  const std::int64_t first = std::min(elements, vectors.first * kVectorElements);
  return {.first = first, .count = std::min(elements, vectors.end() * kVectorElements) - first};
}

}  // namespace bertrand::distributed
