// What the parameters of a model are called in the picture of a graph (autograd/graph.h).
#pragma once
#include "autograd/graph.h"
#include "nn/module.h"

namespace bertrand::nn {

/// The parameters by their dotted names; one with several names has them joined by "+": "query.weight+key.weight".
LeafNames leaf_names(const Module& model);

}  // namespace bertrand::nn
