// Each layer: its parameters with their names and initial values, then the op that it is.
#include "nn/layers.h"

namespace bertrand::nn {

Linear::Linear(const Scope& scope, const Sizes& sizes)
    : Module(scope),
      weight(in("weight"), init::truncated_normal({sizes.out_features, sizes.in_features}, sizes.initializer_range)),
      bias(in("bias"), init::zeros({sizes.out_features})) {}

LayerNorm::LayerNorm(const Scope& scope, Dim hidden, double norm_epsilon)
    : Module(scope),
      weight(in("weight"), init::ones({hidden})),
      bias(in("bias"), init::zeros({hidden})),
      epsilon(norm_epsilon) {}

Variable LayerNorm::operator()(const Variable& x) const { return layer_norm(x, weight, bias, epsilon); }
Variable LayerNorm::operator()(const Variable& x, const Variable& residual, const Dropout& dropout) const {
  return dropout_add_layer_norm(x, residual, weight, bias, {.epsilon = epsilon, .dropout = dropout});
}

Embedding::Embedding(const Scope& scope, const Sizes& sizes)
    : Module(scope),
      weight(in("weight"), init::truncated_normal({sizes.rows, sizes.hidden}, sizes.initializer_range)) {}

SelfAttention::SelfAttention(const Scope& scope, const Sizes& sizes)
    : Module(scope),
      weight(*this, {"query.weight", "key.weight", "value.weight"},
             init::truncated_normal({3 * sizes.hidden, sizes.hidden}, sizes.initializer_range)),
      bias(*this, {"query.bias", "key.bias", "value.bias"}, init::zeros({3 * sizes.hidden})),
      heads_(sizes.heads),
      dropout_(sizes.dropout) {}

Variable SelfAttention::operator()(const Variable& x, const Packing& packing, const Randomness& randomness) const {
  return attention(linear(x, weight, bias), {.offsets = packing.offsets,
                                             .heads = heads_,
                                             .longest = packing.longest,
                                             .dropout = randomness.dropout(dropout_, site())});
}

}  // namespace bertrand::nn
