// The one order in which the micro-batches of a step are added up, whoever computed which.
//
// The parts are the micro-batches 0 … n−1. The left half of every node is the largest power of two below its size:
//
//   n = 5:  ((0 + 1) + (2 + 3)) + 4
//
// which is what a binary counter does that is handed one part after the other.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace bertrand::distributed {

/// The sum of the parts [first, first + count), which are a node of the tree.
struct Addend {
  std::int64_t first = 0, count = 1;
  Tensor values;

  std::int64_t end() const { return first + count; }
};

/// Whether the tree over `parts` parts has a node whose halves are these two.
bool siblings(const Addend& left, const Addend& right, std::int64_t parts);

/// Adds up all siblings among addends that stand in order of their parts: add(left, right) is to put the sum of both
/// into right. Returns the nodes that are left over, one if the addends cover all parts.
std::vector<Addend> add_siblings(std::span<const Addend> addends, std::int64_t parts,
                                 const std::function<void(const Tensor& left, const Tensor& right)>& add);

}  // namespace bertrand::distributed
