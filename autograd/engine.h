// backward(): how gradients travel from a loss to the leaves.
#pragma once
#include <functional>

#include "autograd/variable.h"

namespace bertrand {

/// Called for a leaf when its gradient is final: every op that used it has run backward. For collectives, which send
/// gradients away while backward computes others.
using LeafDone = std::function<void(const GradientSlot& leaf)>;

/// Fills the gradient of every leaf that `loss` depends on, adding to what is there, and takes the graph apart on the
/// way: a graph can be walked once. `loss` has one element; `gradient` is the gradient of the loss itself (a loss
/// scale), of the loss's shape and type; empty: 1. `leaf_done` is called on this thread once for each leaf.
/// Throws Error(Failure::bug) if an earlier backward() has taken a part of the graph away, if a value that an op used
/// was written in place since, and if an op gives gradients of the wrong number or shape.
void backward(const Variable& loss, const Tensor& gradient = {}, const LeafDone& leaf_done = {});

/// The same from a result `y` of any shape, whose gradient is known.
void backward_from(const Variable& y, const Tensor& gradient, const LeafDone& leaf_done = {});

}  // namespace bertrand
