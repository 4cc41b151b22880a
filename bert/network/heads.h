// What is trained on top of the encoder. Losses are divided by counts of the whole step, which the caller knows.
#pragma once
#include "bert/network/bert.h"

namespace bertrand::bert {

/// cls.predictions: dense, activation, norm, then the tied word embeddings as decoder. Runs on masked rows only.
class PredictionHead : public nn::Module {
 public:
  PredictionHead(const nn::Scope& scope, const Config& config);
  /// rows [masked, hidden] · word_embeddings [vocab, hidden]ᵀ → [masked, vocab]
  Variable operator()(const Variable& rows, const nn::Parameter& word_embeddings) const;

  nn::Parameter bias;  // [vocab]
  nn::Linear dense;    // "transform.dense"
  nn::LayerNorm norm;  // "transform.LayerNorm"

 private:
  Activation activation_;
};

/// The encoder and the head that guesses masked words.
struct ForMaskedLm : nn::Module {
  explicit ForMaskedLm(const Config& config);

  Bert bert;
  PredictionHead predictions;  // "cls.predictions"
};

/// The encoder under the name that it has on disk.
struct EncoderAlone : nn::Module {
  EncoderAlone(const Config& config, PoolerLayer pooler_layer) : bert(in("bert"), config, pooler_layer) {}

  Bert bert;
};

/// Masked language model and next sentence prediction together, or the first alone.
class ForPretraining : public nn::Module {
 public:
  struct Targets {
    Tensor masked_rows;    // i32 [masked]: rows of the packed batch
    Tensor masked_labels;  // i32 [masked]
    Tensor next_sentence;  // i32 [sequences]: 0 the real next, 1 a random one; empty: masked words alone
    double masked_count = 1, sequence_count = 1;  // of the whole step
  };
  struct Result {
    Variable masked_lm_loss, next_sentence_loss;      // [1] each; of masked words alone the first
    Variable masked_lm_logits, next_sentence_logits;  // [masked, vocab], [sequences, 2]; empty unless asked for
    Variable pooled;                                  // [sequences, hidden]; empty unless asked for
  };
  enum class Keep { losses, logits };  // logits cost memory until they are dropped
  explicit ForPretraining(const Config& config);
  Result operator()(const PackedBatch& batch, const Targets& targets, const nn::Randomness& randomness,
                    Keep keep) const;

  Bert bert;
  PredictionHead predictions;   // "cls.predictions"
  nn::Linear seq_relationship;  // "cls.seq_relationship"

 private:
  Result masked_words(const PackedBatch& batch, const Targets& targets, const nn::Randomness& randomness,
                      Keep keep) const;
};

/// An encoder and the head of one task.
class TaskModel : public nn::Module {
 public:
  enum class Rows {
    sequences,  ///< a row of outputs for each sequence
    tokens      ///< one for each token
  };
  /// [sequences or tokens, outputs]
  virtual Variable operator()(const PackedBatch& batch, const nn::Randomness& randomness) const = 0;
  virtual Rows rows() const = 0;
  virtual Dim outputs() const = 0;
};

/// dropout, then a dense layer on the pooled [CLS] row: classes, several yes/no labels, or one number, which may be the
/// score of a choice.
class ForSequenceClassification : public TaskModel {
 public:
  ForSequenceClassification(const Config& config, Dim outputs);
  Variable operator()(const PackedBatch& batch, const nn::Randomness& randomness) const override;
  Rows rows() const override { return Rows::sequences; }
  Dim outputs() const override { return classifier.bias.initial().shape[0]; }

  Bert bert;
  nn::Linear classifier;

 private:
  double dropout_;
};

/// dropout, then a dense layer on every row.
class ForTokenClassification : public TaskModel {
 public:
  ForTokenClassification(const Config& config, Dim labels);
  Variable operator()(const PackedBatch& batch, const nn::Randomness& randomness) const override;
  Rows rows() const override { return Rows::tokens; }
  Dim outputs() const override { return classifier.bias.initial().shape[0]; }

  Bert bert;
  nn::Linear classifier;

 private:
  double dropout_;
};

/// Where an answer begins and ends: a softmax over each sequence's own tokens. Its outputs are those of start and end.
class ForQuestionAnswering : public TaskModel {
 public:
  explicit ForQuestionAnswering(const Config& config);
  Variable operator()(const PackedBatch& batch, const nn::Randomness& randomness) const override;
  Rows rows() const override { return Rows::tokens; }
  Dim outputs() const override { return 2; }
  /// (Σ CE(start) + Σ CE(end)) / 2 / count; `starts` and `ends` are positions within each sequence.
  struct Spans {
    std::vector<std::int32_t> starts, ends;
    double count = 1;
  };
  static Variable loss(const Variable& logits, const PackedBatch& batch, const Spans& spans);

  Bert bert;
  nn::Linear qa_outputs;
};

}  // namespace bertrand::bert
