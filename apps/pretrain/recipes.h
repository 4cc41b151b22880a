// The published settings of pre-training that --recipe knows.
#pragma once
#include <vector>

#include "training/run/recipe.h"

namespace bertrand::pretrain {

/// In the order in which a model goes through them: two phases of each publisher.
const std::vector<training::Recipe>& recipes();

}  // namespace bertrand::pretrain
