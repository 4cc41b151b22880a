// The encoder: embeddings, layers, pooler.
#include "bert/network/bert.h"

#include "autograd/recompute.h"

namespace bertrand::bert {
namespace {

nn::Embedding::Sizes table(Dim rows, const Config& config) {
  return {.rows = rows, .hidden = config.hidden_size, .initializer_range = config.initializer_range};
}
nn::Linear::Sizes dense_sizes(Dim in_features, Dim out_features, const Config& config) {
  return {.in_features = in_features, .out_features = out_features, .initializer_range = config.initializer_range};
}

}  // namespace

Embeddings::Embeddings(const nn::Scope& scope, const Config& config)
    : Module(scope),
      word_embeddings(in("word_embeddings"), table(config.vocab_size, config)),
      position_embeddings(in("position_embeddings"), table(config.max_position_embeddings, config)),
      token_type_embeddings(in("token_type_embeddings"), table(config.type_vocab_size, config)),
      norm(in("LayerNorm"), config.hidden_size, config.layer_norm_eps),
      dropout_(config.hidden_dropout_prob) {}

Variable Embeddings::operator()(const PackedBatch& batch, const nn::Randomness& randomness) const {
  return with_words(word_embeddings(batch.token_ids), batch, randomness);
}

Variable Embeddings::with_words(const Variable& words, const PackedBatch& batch,
                                const nn::Randomness& randomness) const {
  const Variable x = add(add(words, token_type_embeddings(batch.token_types)), position_embeddings(batch.positions));
  return dropout(norm(x), randomness.dropout(dropout_, site()));
}

Output::Output(const nn::Scope& scope, const nn::Linear::Sizes& sizes, const Config& config)
    : Module(scope),
      dense(in("dense"), sizes),
      norm(in("LayerNorm"), sizes.out_features, config.layer_norm_eps),
      dropout_(config.hidden_dropout_prob) {}

Variable Output::operator()(const Variable& x, const Variable& residual, const nn::Randomness& randomness) const {
  return norm(dense(x), residual, randomness.dropout(dropout_, site()));
}

AttentionBlock::AttentionBlock(const nn::Scope& scope, const Config& config)
    : Module(scope),
      self(in("self"), {.hidden = config.hidden_size,
                        .heads = static_cast<int>(config.num_attention_heads),
                        .dropout = config.attention_probs_dropout_prob,
                        .initializer_range = config.initializer_range}),
      output(in("output"), dense_sizes(config.hidden_size, config.hidden_size, config), config) {}

Variable AttentionBlock::operator()(const Variable& x, const PackedBatch& batch, const nn::Randomness& randomness,
                                    const Tensor& rows) const {
  const Variable context = self(x, batch.packing, randomness);
  if (!rows) return output(context, x, randomness);
  return output(gather_rows(context, rows), gather_rows(x, rows), randomness.rows(rows));
}

Intermediate::Intermediate(const nn::Scope& scope, const Config& config)
    : Module(scope),
      dense(in("dense"), dense_sizes(config.hidden_size, config.intermediate_size, config)),
      activation_(config.hidden_act) {}

Variable Intermediate::operator()(const Variable& x) const { return dense(x, activation_); }

Layer::Layer(const nn::Scope& scope, const Config& config)
    : Module(scope),
      attention(in("attention"), config),
      intermediate(in("intermediate"), config),
      output(in("output"), dense_sizes(config.intermediate_size, config.hidden_size, config), config) {}

Variable Layer::operator()(const Variable& x, const PackedBatch& batch, const nn::Randomness& randomness,
                           const Tensor& rows) const {
  const Variable attended = attention(x, batch, randomness, rows);
  return output(intermediate(attended), attended, rows ? randomness.rows(rows) : randomness);
}

Variable Layer::recomputed(const Variable& x, const PackedBatch& batch, const nn::Randomness& randomness,
                           const Tensor& rows) const {
  std::vector<Variable> variables;
  for (const auto& [path, parameter] : parameters()) variables.push_back(*parameter);
  return bertrand::recomputed(x, variables, [this, batch, randomness, rows](const Variable& again) {
    return (*this)(again, batch, randomness, rows);
  });
}

Encoder::Encoder(const nn::Scope& scope, const Config& config) : Module(scope) {
  for (Dim i = 0; i < config.num_hidden_layers; ++i)
    layers_.push_back(std::make_unique<Layer>(in("layer." + std::to_string(i)), config));
}

Variable Encoder::operator()(Variable x, const PackedBatch& batch, const nn::Randomness& randomness, const Tensor& rows,
                             std::vector<Variable>* hidden_states) const {
  if (hidden_states) hidden_states->push_back(x);
  for (const auto& layer : layers_) {
    const Tensor wanted = layer == layers_.back() ? rows : Tensor();
    x = Recomputing::next_part() ? layer->recomputed(x, batch, randomness, wanted)
                                 : (*layer)(x, batch, randomness, wanted);
    if (hidden_states) hidden_states->push_back(x);
  }
  return rows && layers_.empty() ? gather_rows(x, rows) : x;
}

Pooler::Pooler(const nn::Scope& scope, const Config& config)
    : Module(scope), dense(in("dense"), dense_sizes(config.hidden_size, config.hidden_size, config)) {}

Variable Pooler::operator()(const Variable& first_rows) const { return tanh(dense(first_rows)); }

Bert::Bert(const nn::Scope& scope, const Config& config, PoolerLayer pooler_layer)
    : Module(scope),
      embeddings(in("embeddings"), config),
      encoder(in("encoder"), config),
      pooler(pooler_layer == PoolerLayer::present ? std::make_unique<Pooler>(in("pooler"), config) : nullptr) {}

Variable Bert::operator()(const PackedBatch& batch, const nn::Randomness& randomness, const Tensor& rows,
                          std::vector<Variable>* hidden_states) const {
  return encoder(embeddings(batch, randomness), batch, randomness, rows, hidden_states);
}

}  // namespace bertrand::bert
