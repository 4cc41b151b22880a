// The computation graph of a Variable as a picture: graph(loss) | dot -Tsvg.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "autograd/variable.h"

namespace bertrand {

/// What leaves are called in a picture; those of a model: nn::leaf_names(). A leaf that is not named has its shape
/// alone.
using LeafNames = std::vector<std::pair<std::string, Variable>>;

/// The graph of `result` in the DOT language of Graphviz, from the leaves at the top to `result`: an oval for each
/// leaf, with its name and shape; a box for each op, with its name and the shape of its result; "constant" for an input
/// that wants no gradient, whose shape the graph does not know. The same graph gives the same text. Throws
/// Error(Failure::bug) if `result` wants no gradient, and after backward(), which takes the graph apart.
std::string graph(const Variable& result, const LeafNames& names = {});

}  // namespace bertrand
