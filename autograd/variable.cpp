#include "autograd/leaf_done.h"

#include <unordered_set>
#include <utility>

namespace bertrand {
namespace {

thread_local bool recording = true;
thread_local bool checking_finite = false;

void check_finite(const Tensor& x, const char* op, const char* pass) {
  if (!checking_finite || !x || !is_floating(x.dtype())) return;
  const Dim at = x.backend().first_non_finite(x);
  if (at >= 0) fail(Failure::numerics, "op {}: {}: element {} of {} is not finite", op, pass, at, x.shape());
}

}  // namespace

Variable::Variable(Tensor value, bool requires_grad) : value_(std::move(value)) {
  if (!requires_grad) return;
  slot_ = std::make_shared<GradientSlot>();
  slot_->shape = value_.shape();
}

Tensor Variable::grad() const {
  if (!slot_) return {};
  return slot_->written ? slot_->buffer : slot_->gradient;
}

void Variable::zero_grad() {
  if (!slot_) return;
  slot_->gradient = {};
  slot_->written = false;
}

ops::Into Wanted::into(std::size_t input) {
  GradientSlot& slot = *inputs_[input];
  ops::Into destination;
  if (slot.buffer) destination = {slot.buffer, std::exchange(slot.written, true)};
  // A gradient that only the slot holds may be added to in place: nobody looks.
  else if (slot.gradient && slot.gradient.unique()) destination = {slot.gradient, true};
  given_[input] = destination.out;
  return destination;
}

Tensor Wanted::fresh_buffer(std::size_t input) {
  if (!inputs_[input] || !inputs_[input]->buffer || std::exchange(inputs_[input]->written, true)) return {};
  return given_[input] = inputs_[input]->buffer;
}

Node::Node(const char* op_name, std::vector<std::shared_ptr<GradientSlot>> op_inputs, Backward op_backward)
    : op(op_name), inputs(std::move(op_inputs)), backward(std::move(op_backward)) {}

Node::~Node() {
  std::vector<std::shared_ptr<GradientSlot>> doomed = std::move(inputs);
  while (!doomed.empty()) {
    const std::shared_ptr<GradientSlot> slot = std::move(doomed.back());
    doomed.pop_back();
    if (!slot || slot.use_count() != 1 || !slot->node || slot->node.use_count() != 1) continue;
    for (auto& input : slot->node->inputs) doomed.push_back(std::move(input));
    slot->node->inputs.clear();
  }
}

Variable record(const char* op, Tensor value, const std::vector<Variable>& inputs, Backward backward) {
  check_finite(value, op, "forward");
  Variable out(std::move(value));
  if (!recording) return out;
  bool wanted = false;
  std::vector<std::shared_ptr<GradientSlot>> slots;
  for (const Variable& input : inputs) {
    slots.push_back(input.slot());
    wanted |= input.requires_grad();
  }
  if (!wanted) return out;
  out.slot_ = std::make_shared<GradientSlot>();
  out.slot_->shape = out.shape();
  out.slot_->node = std::make_shared<Node>(op, std::move(slots), std::move(backward));
  return out;
}

namespace {

using Slot = std::shared_ptr<GradientSlot>;

/// Post-order without recursion, so that depth is bounded by memory and not by the stack.
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

/// Adds what an op returned for one of its inputs.
void accumulate(GradientSlot& slot, const Tensor& gradient) {
  if (slot.buffer) {
    if (std::exchange(slot.written, true)) ops::add_into(gradient, slot.buffer);
    else ops::copy_into(gradient, slot.buffer);
  } else if (!slot.gradient) {
    // Intermediate gradients may be shared and are never written to; a leaf's is the user's own.
    slot.gradient = slot.node ? gradient : ops::copy(gradient);
  } else {
    slot.gradient = ops::binary(Binary::add, slot.gradient, gradient);
  }
}

void run_backward(Node& node, const Tensor& dy) {
  Wanted wanted(node.inputs);
  const Grads grads = node.backward(dy, wanted);
  check(grads.size() == node.inputs.size(), "{}: backward gave {} gradients for {} inputs", node.op, grads.size(),
        node.inputs.size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!node.inputs[i]) continue;
    GradientSlot& slot = *node.inputs[i];
    check(grads[i] && grads[i].shape() == slot.shape, "{}: gradient {} is {} but the input is {}", node.op, i,
          grads[i] ? grads[i].shape() : Shape{}, slot.shape);
    check_finite(grads[i], node.op, "backward");
    if (!wanted.given(i)) accumulate(slot, grads[i]);
    else check(grads[i].same_memory(wanted.given(i)), "{}: gradient {} was not written where into() said", node.op, i);
  }
}

}  // namespace

void backward(const Variable& loss, const Tensor& gradient) { backward(loss, gradient, {}); }

void backward(const Variable& loss, const Tensor& gradient, const LeafDone& leaf_done) {
  check(loss.value().elements() == 1, "backward: the loss must have one element, got {}", loss.shape());
  check(loss.requires_grad(), "backward: nothing that the loss depends on wants a gradient");
  const NoGrad guard;
  std::vector<Slot> order = topological_order(loss.slot());
  check(!gradient || (gradient.shape() == loss.shape() && gradient.dtype() == loss.value().dtype()),
        "backward: the loss is {} {} but its gradient {} {}", name_of(loss.value().dtype()), loss.shape(),
        name_of(gradient.dtype()), gradient.shape());
  accumulate(*loss.slot(),
             gradient ? gradient : ops::full(loss.shape(), 1, loss.value().dtype(), loss.value().backend()));
  for (; !order.empty(); order.pop_back()) {
    const Slot& slot = order.back();
    if (!slot->node && leaf_done) leaf_done(*slot);  // its users stand before it in this order
    if (!slot->node || !slot->gradient) continue;
    const std::shared_ptr<Node> node = std::move(slot->node);  // saved tensors die as soon as they are used
    slot->spent = true;
    const Tensor dy = std::exchange(slot->gradient, {});
    run_backward(*node, dy);
  }
}

NoGrad::NoGrad() : previous_(std::exchange(recording, false)) {}
NoGrad::~NoGrad() { recording = previous_; }
bool NoGrad::active() { return !recording; }

CheckFinite::CheckFinite() : previous_(std::exchange(checking_finite, true)) {}
CheckFinite::~CheckFinite() { checking_finite = previous_; }

}  // namespace bertrand
