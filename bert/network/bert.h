// BERT's encoder (Devlin et al. 2018) on packed tokens. Every member has the name that it has on disk.
#pragma once
#include <memory>
#include <vector>

#include "bert/network/config.h"
#include "bert/network/packed_batch.h"
#include "nn/layers.h"

namespace bertrand::bert {

/// dropout(norm(word + type + position))
class Embeddings : public nn::Module {
 public:
  Embeddings(const nn::Scope& scope, const Config& config);
  Variable operator()(const PackedBatch& batch, const nn::Randomness& randomness) const;  // [tokens, hidden]
  /// The same with `words` in place of the words' vectors [tokens, hidden]: to differentiate by these.
  Variable with_words(const Variable& words, const PackedBatch& batch, const nn::Randomness& randomness) const;

  nn::Embedding word_embeddings;        // [vocab, hidden]
  nn::Embedding position_embeddings;    // [positions, hidden]
  nn::Embedding token_type_embeddings;  // [types, hidden]
  nn::LayerNorm norm;                   // "LayerNorm"

 private:
  double dropout_;
};

/// A dense layer whose result is dropped out, added to what came before, and normalised.
class Output : public nn::Module {
 public:
  Output(const nn::Scope& scope, const nn::Linear::Sizes& sizes, const Config& config);
  /// x [n, in], residual [n, hidden] → [n, hidden]
  Variable operator()(const Variable& x, const Variable& residual, const nn::Randomness& randomness) const;

  nn::Linear dense;
  nn::LayerNorm norm;  // "LayerNorm"

 private:
  double dropout_;
};

class AttentionBlock : public nn::Module {
 public:
  AttentionBlock(const nn::Scope& scope, const Config& config);
  /// Shapes and `rows` as of Layer.
  Variable operator()(const Variable& x, const PackedBatch& batch, const nn::Randomness& randomness,
                      const Tensor& rows) const;

  nn::SelfAttention self;
  Output output;
};

class Intermediate : public nn::Module {
 public:
  Intermediate(const nn::Scope& scope, const Config& config);
  Variable operator()(const Variable& x) const;  // [n, hidden] → [n, intermediate]

  nn::Linear dense;

 private:
  Activation activation_;
};

class Layer : public nn::Module {
 public:
  Layer(const nn::Scope& scope, const Config& config);
  /// x [tokens, hidden] → [rows, hidden], or [tokens, hidden] if `rows` is empty. `rows`: i32 [rows], rows of the
  /// packed batch in the order of the result. All rows are attended to, and what comes after attention works on a row
  /// by itself.
  Variable operator()(const Variable& x, const PackedBatch& batch, const nn::Randomness& randomness,
                      const Tensor& rows) const;
  /// The same, of which the graph keeps x alone (autograd/recompute.h).
  Variable recomputed(const Variable& x, const PackedBatch& batch, const nn::Randomness& randomness,
                      const Tensor& rows) const;

  AttentionBlock attention;
  Intermediate intermediate;
  Output output;
};

class Encoder : public nn::Module {
 public:
  Encoder(const nn::Scope& scope, const Config& config);
  /// x [tokens, hidden] → [rows, hidden], or [tokens, hidden] if `rows` is empty. `rows`: those that the last layer is
  /// computed for, as in Layer. The output of every layer, the embeddings first, is appended to `hidden_states` if that
  /// is not null: [tokens, hidden], of the last layer as the result.
  Variable operator()(Variable x, const PackedBatch& batch, const nn::Randomness& randomness, const Tensor& rows,
                      std::vector<Variable>* hidden_states) const;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

/// tanh(dense([CLS] rows)); no dropout.
class Pooler : public nn::Module {
 public:
  Pooler(const nn::Scope& scope, const Config& config);
  Variable operator()(const Variable& first_rows) const;  // [sequences, hidden] → [sequences, hidden]

  nn::Linear dense;
};

enum class PoolerLayer { present, absent };

class Bert : public nn::Module {
 public:
  Bert(const nn::Scope& scope, const Config& config, PoolerLayer pooler_layer = PoolerLayer::present);
  /// [rows, hidden]: these rows of the batch (i32), or all. To read few rows saves most of the last layer's work.
  Variable operator()(const PackedBatch& batch, const nn::Randomness& randomness, const Tensor& rows = {},
                      std::vector<Variable>* hidden_states = nullptr) const;

  Embeddings embeddings;
  Encoder encoder;
  std::unique_ptr<Pooler> pooler;  // null without
};

}  // namespace bertrand::bert
