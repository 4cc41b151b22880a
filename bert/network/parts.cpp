// The parts of a BERT, by the names of its parameters.
#include "bert/network/parts.h"

#include <algorithm>

namespace bertrand::bert {

std::vector<nn::Part> parts_of(const nn::Module& model) {
  const auto parameters = model.parameters();
  const auto has = [&](const std::string& prefix) {
    return std::ranges::any_of(parameters, [&](const auto& each) { return each.first.starts_with(prefix); });
  };
  const auto layer = [](int number) { return "bert.encoder.layer." + std::to_string(number) + "."; };
  int layers = 0;
  while (has(layer(layers))) ++layers;
  std::vector<nn::Part> parts{{"embeddings", "bert.embeddings.", layers + 1}};
  for (int i = 0; i < layers; ++i) parts.push_back({std::to_string(i), layer(i), layers - i});
  if (has("bert.pooler.")) parts.push_back({"pooler", "bert.pooler.", 0});
  return parts;
}

}  // namespace bertrand::bert
