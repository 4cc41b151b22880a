// The heads and their losses.
#include "bert/network/heads.h"

namespace bertrand::bert {
namespace {

nn::Linear::Sizes dense_sizes(Dim out_features, const Config& config) {
  return {
      .in_features = config.hidden_size, .out_features = out_features, .initializer_range = config.initializer_range};
}

/// The elements of a, then those of b.
Tensor joined(const Tensor& a, const Tensor& b) {
  Tensor both({a.elements() + b.elements()}, a.dtype(), a.backend());
  ops::copy_into(a, both.rows(0, a.elements()));
  ops::copy_into(b, both.rows(a.elements(), both.elements()));
  return both;
}

/// The tokens of each sequence as a row of one length.
struct SequenceRows {
  std::vector<std::int32_t> rows;  // [sequences, longest]: of the packed batch
  std::vector<float> low;          // [sequences, longest, 2]: 0, and far below every logit after a sequence's end
};

/// After its end a sequence begins again. There the softmax is 2^-126 at most, and so is the gradient: no sum of
/// numbers that count notices it.
SequenceRows rows_of_sequences(const PackedBatch& batch, Dim longest) {
  constexpr float kLow = -3e4F;  // f16 has it, too
  SequenceRows padded;
  for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    const std::int32_t begin = batch.offsets[s], length = batch.offsets[s + 1] - begin;
    for (std::int32_t i = 0; i < longest; ++i) {
      padded.rows.push_back(begin + i % length);
      padded.low.insert(padded.low.end(), 2, i < length ? 0 : kLow);
    }
  }
  return padded;
}

}  // namespace

PredictionHead::PredictionHead(const nn::Scope& scope, const Config& config)
    : Module(scope),
      bias(in("bias"), nn::init::zeros({config.vocab_size})),
      dense(in("transform.dense"), dense_sizes(config.hidden_size, config)),
      norm(in("transform.LayerNorm"), config.hidden_size, config.layer_norm_eps),
      activation_(config.hidden_act) {}

Variable PredictionHead::operator()(const Variable& rows, const nn::Parameter& word_embeddings) const {
  return linear(norm(dense(rows, activation_)), word_embeddings, bias);
}

ForMaskedLm::ForMaskedLm(const Config& config)
    : bert(in("bert"), config, PoolerLayer::absent), predictions(in("cls.predictions"), config) {}

ForPretraining::ForPretraining(const Config& config)
    : bert(in("bert"), config),
      predictions(in("cls.predictions"), config),
      seq_relationship(in("cls.seq_relationship"), dense_sizes(2, config)) {}

ForPretraining::Result ForPretraining::operator()(const PackedBatch& batch, const Targets& targets,
                                                  const nn::Randomness& randomness, Keep keep) const {
  if (!targets.next_sentence) return masked_words(batch, targets, randomness, keep);
  const Tensor rows = joined(batch.first_rows, targets.masked_rows);  // all that the heads read
  const Variable x = bert(batch, randomness, rows);
  const Variable pooled = (*bert.pooler)(slice(x, 0, 0, batch.sequences));
  Variable masked = predictions(slice(x, 0, batch.sequences, rows.elements()), bert.embeddings.word_embeddings.weight);
  const Variable next = seq_relationship(pooled);
  Result result{.masked_lm_loss = softmax_cross_entropy(masked, targets.masked_labels, targets.masked_count),
                .next_sentence_loss = softmax_cross_entropy(next, targets.next_sentence, targets.sequence_count)};
  if (keep == Keep::logits) {
    result.masked_lm_logits = std::move(masked);
    result.next_sentence_logits = next;
    result.pooled = pooled;
  }
  return result;
}

/// Of neither the pooler nor the first rows.
ForPretraining::Result ForPretraining::masked_words(const PackedBatch& batch, const Targets& targets,
                                                    const nn::Randomness& randomness, Keep keep) const {
  Variable masked = predictions(bert(batch, randomness, targets.masked_rows), bert.embeddings.word_embeddings.weight);
  Result result;
  result.masked_lm_loss = softmax_cross_entropy(masked, targets.masked_labels, targets.masked_count);
  if (keep == Keep::logits) result.masked_lm_logits = std::move(masked);
  return result;
}

ForSequenceClassification::ForSequenceClassification(const Config& config, Dim outputs)
    : bert(in("bert"), config),
      classifier(in("classifier"), dense_sizes(outputs, config)),
      dropout_(config.head_dropout()) {}

Variable ForSequenceClassification::operator()(const PackedBatch& batch, const nn::Randomness& randomness) const {
  const Variable pooled = (*bert.pooler)(bert(batch, randomness, batch.first_rows));
  return classifier(dropout(pooled, randomness.rows(batch.first_rows).dropout(dropout_, classifier.site())));
}

ForTokenClassification::ForTokenClassification(const Config& config, Dim labels)
    : bert(in("bert"), config, PoolerLayer::absent),
      classifier(in("classifier"), dense_sizes(labels, config)),
      dropout_(config.head_dropout()) {}

Variable ForTokenClassification::operator()(const PackedBatch& batch, const nn::Randomness& randomness) const {
  return classifier(dropout(bert(batch, randomness), randomness.dropout(dropout_, classifier.site())));
}

ForQuestionAnswering::ForQuestionAnswering(const Config& config)
    : bert(in("bert"), config, PoolerLayer::absent), qa_outputs(in("qa_outputs"), dense_sizes(2, config)) {}

Variable ForQuestionAnswering::operator()(const PackedBatch& batch, const nn::Randomness& randomness) const {
  return qa_outputs(bert(batch, randomness));
}

Variable ForQuestionAnswering::loss(const Variable& logits, const PackedBatch& batch, const Spans& spans) {
  const Dim longest = batch.packing.longest;
  const SequenceRows padded = rows_of_sequences(batch, longest);
  Backend& backend = logits.value().backend();
  const Tensor low =
      ops::cast(ops::from_host(padded.low, {std::ssize(padded.rows), 2}, backend), logits.value().dtype());
  const Variable rows =
      add(gather_rows(logits, ops::from_host(padded.rows, {std::ssize(padded.rows)}, backend)), Variable(low));
  const auto part = [&](Dim column, const std::vector<std::int32_t>& positions) {
    const Variable scores = reshape(slice(rows, 1, column, column + 1), {batch.sequences, longest});
    return softmax_cross_entropy(scores, ops::from_host(positions, {batch.sequences}, backend), 2 * spans.count);
  };
  return add(part(0, spans.starts), part(1, spans.ends));
}

}  // namespace bertrand::bert
