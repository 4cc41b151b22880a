// Reverse-mode autograd on one double: the whole of the idea in a hundred lines.
//
//   scalar::Value x(3), y(2);
//   scalar::Value loss = x * y + tanh(x);
//   loss.backward();                        // x.gradient() is y + 1 − tanh²(x), y.gradient() is x
//
// Every operation makes a node that remembers its inputs and how its result changes with each of them, a number. That
// number is known while the result is computed, so it is stored. backward() walks from the loss to the leaves, and at
// each node hands gradient · slope to each input: the chain rule. autograd/ does the same with tensors, where the slope
// is a function (a matrix of all slopes would be too large).
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_set>
#include <vector>

namespace scalar {

struct Node {
  double value = 0;
  double gradient = 0;  ///< of the loss with respect to this value: what has been added up so far
  struct Input {
    std::shared_ptr<Node> node;
    double slope;  ///< d value / d input
  };
  std::vector<Input> inputs = {};  ///< none for a leaf
};

class Value {
 public:
  Value(double value) : node_(std::make_shared<Node>(Node{value})) {}  // not explicit, so that 2 * x can be written
  Value(double value, std::vector<Node::Input> inputs)
      : node_(std::make_shared<Node>(Node{value, 0, std::move(inputs)})) {}

  double value() const { return node_->value; }
  double gradient() const { return node_->gradient; }
  void zero_gradient() { node_->gradient = 0; }
  /// What an op notes of its input.
  Node::Input with_slope(double slope) const { return {node_, slope}; }

  /// Adds d this / d leaf to the gradient of every leaf that this value was computed from.
  void backward() const {
    std::vector<Node*> order;  // inputs before the results that use them
    std::unordered_set<Node*> seen;
    visit(node_.get(), seen, order);
    for (Node* node : order)
      if (!node->inputs.empty()) node->gradient = 0;  // of an earlier walk; only leaves keep theirs
    node_->gradient += 1;
    // A node comes after all that use it, so its gradient is complete when it is handed on.
    for (auto node = order.rbegin(); node != order.rend(); ++node)
      for (const Node::Input& input : (*node)->inputs) input.node->gradient += (*node)->gradient * input.slope;
  }

 private:
  static void visit(Node* node, std::unordered_set<Node*>& seen, std::vector<Node*>& order) {
    if (!seen.insert(node).second) return;
    for (const Node::Input& input : node->inputs) visit(input.node.get(), seen, order);
    order.push_back(node);
  }

  std::shared_ptr<Node> node_;
};

// ---- the ops: a result, and for each input the derivative with respect to it

inline Value operator+(const Value& a, const Value& b) {
  return {a.value() + b.value(), {a.with_slope(1), b.with_slope(1)}};
}
inline Value operator-(const Value& a, const Value& b) {
  return {a.value() - b.value(), {a.with_slope(1), b.with_slope(-1)}};
}
inline Value operator*(const Value& a, const Value& b) {
  return {a.value() * b.value(), {a.with_slope(b.value()), b.with_slope(a.value())}};
}
inline Value operator/(const Value& a, const Value& b) {
  const double y = a.value() / b.value();
  return {y, {a.with_slope(1 / b.value()), b.with_slope(-y / b.value())}};
}
inline Value operator-(const Value& x) { return {-x.value(), {x.with_slope(-1)}}; }
inline Value exp(const Value& x) {
  const double y = std::exp(x.value());
  return {y, {x.with_slope(y)}};
}
inline Value log(const Value& x) { return {std::log(x.value()), {x.with_slope(1 / x.value())}}; }
inline Value sqrt(const Value& x) {
  const double y = std::sqrt(x.value());
  return {y, {x.with_slope(0.5 / y)}};
}
inline Value tanh(const Value& x) {
  const double y = std::tanh(x.value());
  return {y, {x.with_slope(1 - y * y)}};
}
inline Value relu(const Value& x) { return {std::max(x.value(), 0.0), {x.with_slope(x.value() > 0 ? 1 : 0)}}; }

}  // namespace scalar
