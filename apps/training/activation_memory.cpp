#include "apps/training/activation_memory.h"

#include <algorithm>

namespace bertrand::training {

std::size_t activation_bytes(const bert::Config& config, const BatchExtent& batch, DType precision) {
  const Dim hidden = config.hidden_size, inner = config.intermediate_size, heads = config.num_attention_heads;
  // Kept of each token until the layer's backward: its input, query, key, value, context, the two sums before the
  // norms, the first norm's result (8 · hidden); both sides of the activation (2 · inner).
  const Dim layer = 8 * hidden + 2 * inner;
  const Dim kept = batch.tokens * (config.num_hidden_layers * layer + 2 * hidden) + 3 * batch.sequences * hidden;
  // And the statistics of softmax and norms, which are f32 in half types too.
  const Dim statistics = batch.tokens * (config.num_hidden_layers * (heads + 4) + 2);

  // On top of that, whichever is larger: the head's logits and the gradient of its input, ...
  const Dim head = batch.head_rows * (batch.head_width + 5 * hidden) + batch.tokens * hidden;
  // ... or the gradients that flow through the last layer while all others still wait.
  const Dim flowing = batch.tokens * (2 * inner + 3 * hidden);
  return static_cast<std::size_t>(kept + std::max(head, flowing)) * size_of(precision) +
         static_cast<std::size_t>(statistics) * size_of(compute_type(precision));
}

}  // namespace bertrand::training
