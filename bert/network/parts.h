// The parts of a BERT: embeddings, the layers by number, pooler; the rest is its head.
#pragma once
#include <vector>

#include "nn/module.h"
#include "nn/parts.h"

namespace bertrand::bert {

/// From the input to the head, of a model whose encoder is named "bert".
std::vector<nn::Part> parts_of(const nn::Module& model);

}  // namespace bertrand::bert
