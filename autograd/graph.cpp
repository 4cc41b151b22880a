#include "autograd/graph.h"

#include <unordered_map>

#include "autograd/walk.h"

namespace bertrand {
namespace {

/// As DOT wants a text between quotes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string graph(const Variable& result, const LeafNames& names) {
  check(result.requires_grad(), "graph: expected a result that wants a gradient, got one that no op has recorded");
  check(!result.slot()->spent, "graph: expected a graph that is whole, got one that backward has taken apart");
  std::unordered_map<const GradientSlot*, std::string> leaf_names;
  for (const auto& [name, leaf] : names)
    if (leaf.requires_grad()) leaf_names.emplace(leaf.slot().get(), escaped(name) + "\\n");

  std::string dot =
      "digraph {\n"
      "  node [fontname=\"sans-serif\", fontsize=11, shape=box, style=filled, fillcolor=\"#e8eefc\"]\n";
  std::unordered_map<const GradientSlot*, std::size_t> numbers;
  std::size_t constants = 0;
  for (const auto& slot : topological_order(result.slot())) {
    const std::size_t number = numbers.size();
    numbers.emplace(slot.get(), number);
    if (!slot->node) {
      dot += fmt::format("  n{} [label=\"{}{}\", shape=ellipse, fillcolor=\"#fdf0d5\"]\n", number,
                         leaf_names[slot.get()], slot->shape);
      continue;
    }
    dot += fmt::format("  n{} [label=\"{}\\n{}\"]\n", number, escaped(slot->node->op), slot->shape);
    for (const auto& input : slot->node->inputs) {
      if (input) {
        dot += fmt::format("  n{} -> n{}\n", numbers.at(input.get()), number);
      } else {
        dot += fmt::format("  c{} [label=\"constant\", shape=plaintext, style=\"\"]\n  c{} -> n{}\n", constants,
                           constants, number);
        ++constants;
      }
    }
  }
  return dot + "}\n";
}

}  // namespace bertrand
