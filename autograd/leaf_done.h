// For those who want gradients while backward still computes others: collectives that send them away.
#pragma once
#include <functional>

#include "autograd/variable.h"

namespace bertrand {

/// Told of a leaf when its gradient is final: every op that used it has run backward.
using LeafDone = std::function<void(const GradientSlot& leaf)>;

/// The backward of autograd/variable.h, which calls `leaf_done` on this thread once for each leaf.
void backward(const Variable& loss, const Tensor& gradient, const LeafDone& leaf_done);

}  // namespace bertrand
