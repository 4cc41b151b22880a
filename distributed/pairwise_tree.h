// The order in which the parts of a sum are added up: a function of their number alone, so that the bits of the sum do
// not depend on which replica computed which part.
//
// The parts are numbered 0 … n−1; for gradients they are the micro-batches of a step. The left half of every node is
// the largest power of two below its size:
//
//   n = 5:  ((0 + 1) + (2 + 3)) + 4
//
// A binary counter that receives one part after the other adds in this order.
#pragma once
#include <cstddef>
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

/// Adds up all siblings among addends that are in the order of their parts: add(left, right) writes the sum of both
/// into right. Returns the nodes that are left; that is one if the addends cover all parts.
std::vector<Addend> add_siblings(std::span<const Addend> addends, std::int64_t parts,
                                 const std::function<void(const Tensor& left, const Tensor& right)>& add);

/// The most nodes that add_siblings() can leave of up to so many parts in a row, in a tree over any number of parts.
std::size_t most_nodes(std::int64_t parts_in_a_row);

}  // namespace bertrand::distributed
