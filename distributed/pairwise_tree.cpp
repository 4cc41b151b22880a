#include "distributed/pairwise_tree.h"

#include <algorithm>

namespace bertrand::distributed {

bool siblings(const Addend& left, const Addend& right, std::int64_t parts) {
  const std::int64_t node = 2 * left.count;  // parts of a full node with this left half
  return left.end() == right.first && left.first % node == 0 && right.end() == std::min(parts, left.first + node);
}

std::vector<Addend> add_siblings(std::span<const Addend> addends, std::int64_t parts,
                                 const std::function<void(const Tensor& left, const Tensor& right)>& add) {
  std::vector<Addend> nodes;
  for (Addend node : addends) {
    for (; !nodes.empty() && siblings(nodes.back(), node, parts); nodes.pop_back()) {
      add(nodes.back().values, node.values);
      node = {nodes.back().first, nodes.back().count + node.count, node.values};
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// A node of 2^k parts begins at a multiple of 2^k. The node after a left half is smaller: one of the same size would
/// be its sibling, and a larger one cannot begin there. And that smaller node begins where a right half of the tree
/// does, so it is a left half in turn. So from left to right there are right halves that grow, and then left halves
/// that shrink; each size comes twice at most. The fewest parts that n nodes can have are therefore 1 + 1 + 2 + 2 + 4 +
/// 4 + … Only the last node can be cut off by the end of the tree, and then it ends the row, with right halves alone
/// before it (what follows a left half up to the end of the tree is its sibling, and is added to it). Then n nodes have
/// 1 + 2 + 4 + … parts and at least one more, which is no fewer.
std::size_t most_nodes(std::int64_t parts_in_a_row) {
  std::size_t nodes = 0;
  for (std::int64_t least = 1; least <= parts_in_a_row; ++nodes) least += std::int64_t{1} << ((nodes + 1) / 2);
  return nodes;
}

}  // namespace bertrand::distributed
