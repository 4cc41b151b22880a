// The order in which a graph is walked. The engine uses it, and what shows a graph (autograd/graph.h).
#pragma once
#include <memory>
#include <vector>

#include "autograd/variable.h"

namespace bertrand {

/// Every slot that `root` depends on, itself the last: inputs before the results that use them. Post-order without
/// recursion, so that the depth of a graph is bounded by memory and not by the stack. Throws Error(Failure::bug) if
/// backward() has taken a part of the graph away.
std::vector<std::shared_ptr<GradientSlot>> topological_order(const std::shared_ptr<GradientSlot>& root);

}  // namespace bertrand
