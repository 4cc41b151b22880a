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

}  // namespace bertrand::distributed
