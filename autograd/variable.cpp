// Recording: what happens while a result is computed. How gradients travel back is in engine.cpp.
#include "autograd/variable.h"

#include "autograd/check_finite.h"

namespace bertrand {
namespace {

thread_local bool no_grad = false;

}  // namespace

Variable record(const char* op, Tensor value, const std::vector<Variable>& inputs, Backward backward) {
  check_finite(value, op, "forward");
  Variable out(std::move(value));
  bool wanted = false;
  for (const Variable& input : inputs) wanted |= input.requires_grad();
  if (no_grad || !wanted) return out;
  auto node = std::make_shared<Node>();
  node->op = op;
  node->backward = std::move(backward);
  for (const Variable& input : inputs) {
    node->inputs.push_back(input.slot());
    node->values.emplace_back(input.value());
  }
  node->values.emplace_back(out.value());
  out.slot_ = std::make_shared<GradientSlot>(out.value());
  out.slot_->node = std::move(node);
  return out;
}

Variable::Variable(Tensor value, bool requires_grad) : value_(std::move(value)) {
  if (requires_grad) slot_ = std::make_shared<GradientSlot>(value_);
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

void Variable::fail_without_value() {
  fail(Failure::bug,
       "variable: expected a value, got none; hint: a layer's parameters have no memory; make a ParameterSet of the "
       "model before you use it");
}

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

NoGrad::NoGrad(bool active) : previous_(std::exchange(no_grad, active)) {}
NoGrad::~NoGrad() { no_grad = previous_; }
bool NoGrad::active() { return no_grad; }

}  // namespace bertrand
