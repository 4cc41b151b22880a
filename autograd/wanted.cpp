#include "autograd/wanted.h"

namespace bertrand {
namespace {

/// Whether the gradient lies where its value lay (ops::cross_entropy_backward). Other ops that used the value would
/// take a write there for one to the value.
bool lies_in_the_value(const GradientSlot& slot) {
  return slot.node && slot.node->values.back().watches(slot.gradient);
}

}  // namespace

ops::Into Wanted::into(std::size_t input) {
  GradientSlot& slot = *inputs_[input];
  ops::Into place;
  if (slot.buffer) place = {slot.buffer, std::exchange(slot.written, true)};
  else if (slot.gradient && slot.gradient.unique() && !lies_in_the_value(slot)) place = {slot.gradient, true};
  given_[input] = place.out;
  return place;
}

Tensor Wanted::gathered(std::size_t input) {
  const GradientSlot& slot = *inputs_[input];
  return given_[input] = slot.buffer ? slot.buffer : slot.gradient;
}

Tensor Wanted::fresh_buffer(std::size_t input) {
  if (!inputs_[input] || !inputs_[input]->buffer || std::exchange(inputs_[input]->written, true)) return {};
  return given_[input] = inputs_[input]->buffer;
}

}  // namespace bertrand
