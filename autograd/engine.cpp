// The engine in three steps: order the graph, then walk it from the loss to the leaves, and at each op hand the
// gradient of its output to its closure and add up what comes back.
#include "autograd/engine.h"

#include <unordered_set>

#include "autograd/check_finite.h"
#include "autograd/walk.h"
#include "autograd/wanted.h"

namespace bertrand {

using Slot = std::shared_ptr<GradientSlot>;

std::vector<Slot> topological_order(const Slot& root) {
  std::vector<Slot> order;
  std::unordered_set<const GradientSlot*> seen{root.get()};
  std::vector<std::pair<Slot, std::size_t>> path{{root, 0}};
  while (!path.empty()) {
    auto& [slot, next] = path.back();
    check(!slot->spent, "backward: an earlier backward has taken this graph apart; hint: compute it again");
    if (!slot->node || next == slot->node->inputs.size()) {
      order.push_back(std::move(slot));
      path.pop_back();
      continue;
    }
    Slot input = slot->node->inputs[next++];
    if (input && seen.insert(input.get()).second) path.emplace_back(std::move(input), 0);
  }
  return order;
}

namespace {

/// Adds to a slot what an op returned for it.
void accumulate(GradientSlot& slot, const Tensor& gradient) {
  if (slot.buffer) {
    if (std::exchange(slot.written, true)) ops::add_into(gradient, slot.buffer);
    else ops::copy_into(gradient, slot.buffer);
  } else if (!slot.gradient) {
    // Several slots may share an intermediate gradient, so no op writes to it; a leaf's gradient is the user's own.
    slot.gradient = slot.node ? gradient : ops::copy(gradient);
  } else {
    slot.gradient = ops::binary(Binary::add, slot.gradient, gradient);
  }
}

void check_unwritten(const Node& node) {
  for (std::size_t i = 0; i < node.values.size(); ++i)
    check(!node.values[i].written(),
          "{}: backward: expected the values that the op used, but the memory of {} was written in place since; hint: "
          "make a new "
          "tensor, or write after backward()",
          node.op, i < node.inputs.size() ? fmt::format("input {}", i) : "its result");
}

void run_backward(Node& node, const Tensor& dy) {
  check_unwritten(node);
  Wanted wanted(node.inputs);
  const Grads grads = node.backward(dy, wanted);
  check(grads.size() == node.inputs.size(), "{}: backward: expected {} gradients, one for each input, got {}", node.op,
        node.inputs.size(), grads.size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!node.inputs[i]) continue;
    GradientSlot& slot = *node.inputs[i];
    check(static_cast<bool>(grads[i]), "{}: backward: expected a gradient for input {}, got an empty tensor", node.op,
          i);
    check(grads[i].shape() == slot.shape && grads[i].dtype() == slot.dtype,
          "{}: backward: expected gradient {} to be {} {}, as its input is, got {} {}", node.op, i, name_of(slot.dtype),
          slot.shape, name_of(grads[i].dtype()), grads[i].shape());
    check_finite(grads[i], node.op, "backward");
    if (!wanted.given(i)) accumulate(slot, grads[i]);
    else
      check(grads[i].same_memory(wanted.given(i)),
            "{}: backward: expected gradient {} in the memory that Wanted gave for it, got another tensor", node.op, i);
  }
}

}  // namespace

void backward(const Variable& loss, const Tensor& gradient, const LeafDone& leaf_done) {
  check(loss.value().elements() == 1,
        "backward: expected a loss of one element, got {}; hint: give backward() its sum() or mean()", loss.shape());
  backward_from(loss, gradient ? gradient : ops::full(loss.shape(), 1, loss.value().dtype(), loss.value().backend()),
                leaf_done);
}

void backward_from(const Variable& y, const Tensor& gradient, const LeafDone& leaf_done) {
  check(y.requires_grad(),
        "backward: expected a loss that depends on a value that wants a gradient, got none; hint: "
        "Variable(tensor, /*requires_grad=*/true), and no NoGrad while it is computed");
  check(gradient.shape() == y.shape() && gradient.dtype() == y.value().dtype(),
        "backward: expected a gradient of the loss of {} {}, as the loss is, got {} {}", name_of(y.value().dtype()),
        y.shape(), name_of(gradient.dtype()), gradient.shape());
  const NoGrad guard;
  std::vector<Slot> order = topological_order(y.slot());
  accumulate(*y.slot(), gradient);
  for (; !order.empty(); order.pop_back()) {
    const Slot& slot = order.back();
    if (!slot->node) {
      if (leaf_done) leaf_done(*slot);  // the ops that use it have all run
      continue;
    }
    const std::shared_ptr<Node> node = std::move(slot->node);  // what its closure captured dies after its one use
    slot->spent = true;
    const Tensor dy = std::exchange(slot->gradient, {});
    run_backward(*node, dy);
  }
}

}  // namespace bertrand
