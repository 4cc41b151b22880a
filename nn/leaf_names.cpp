#include "nn/leaf_names.h"

namespace bertrand::nn {

LeafNames leaf_names(const Module& model) {
  LeafNames names;
  for (const auto& [path, parameter] : model.parameters())
    names.emplace_back(fmt::format("{}{}", path, fmt::join(parameter->part_names(), "+")), *parameter);
  return names;
}

}  // namespace bertrand::nn
