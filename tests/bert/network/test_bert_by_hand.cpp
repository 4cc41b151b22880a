// BERT written out in plain ops, straight from the paper and its published code, dropout included: what the modules
// compute must equal it, so that no dropout, residual or norm can wander to another place.
#include <doctest/doctest.h>

#include <cmath>

#include "bert/network/heads.h"
#include "bert/network/small_bert.h"
#include "support/worst.h"

using namespace bertrand;

namespace {

/// A forward pass over named tensors.
class ByHand {
 public:
  ByHand(const bert::Config& config, const nn::ParameterSet& parameters, const bert::PackedBatch& batch,
         const nn::Randomness& randomness)
      : config_(config), parameters_(parameters), batch_(batch), randomness_(randomness) {}

  Variable named(const std::string& name) const {
    REQUIRE_MESSAGE(parameters_.find(name) != nullptr, name);
    return Variable(parameters_.value(*parameters_.find(name)));
  }
  Variable dense(const Variable& x, const std::string& name) const {
    return linear(x, named(name + ".weight"), named(name + ".bias"));
  }
  Variable norm(const Variable& x, const std::string& name) const {
    return layer_norm(x, named(name + ".weight"), named(name + ".bias"), config_.layer_norm_eps);
  }
  /// Dropout is keyed by the name of the module that holds it.
  Variable dropped(const Variable& x, const std::string& module) const {
    return dropout(x, randomness_.dropout(config_.hidden_dropout_prob, hash_name(module + ".")));
  }

  Variable embeddings() const {
    const std::string e = "bert.embeddings.";
    const Variable words = embedding(named(e + "word_embeddings.weight"), batch_.token_ids);
    const Variable types = embedding(named(e + "token_type_embeddings.weight"), batch_.token_types);
    const Variable places = embedding(named(e + "position_embeddings.weight"), batch_.positions);
    return dropped(norm(add(add(words, types), places), e + "LayerNorm"), "bert.embeddings");
  }

  Variable layer(const Variable& x, const std::string& name) const {
    const std::string self = name + ".attention.self";
    const Dropout probabilities = randomness_.dropout(config_.attention_probs_dropout_prob, hash_name(self + "."));
    // Side by side: each of query, key and value placed in its third by a product with ones and zeros.
    Variable qkv;
    for (const auto& [third, part] : {std::pair{0, ".query"}, {1, ".key"}, {2, ".value"}}) {
      const Variable placed = matmul(dense(x, self + part), third_of(third));
      qkv = qkv ? add(qkv, placed) : placed;
    }
    const Variable context = attention(qkv, {.offsets = batch_.packing.offsets,
                                             .heads = static_cast<int>(config_.num_attention_heads),
                                             .longest = batch_.packing.longest,
                                             .dropout = probabilities});
    const std::string after = name + ".attention.output";
    const Variable attended = norm(add(dropped(dense(context, after + ".dense"), after), x), after + ".LayerNorm");
    const Variable inner = gelu(dense(attended, name + ".intermediate.dense"));
    const std::string out = name + ".output";
    return norm(add(dropped(dense(inner, out + ".dense"), out), attended), out + ".LayerNorm");
  }

  Variable encoder() const {
    Variable x = embeddings();
    for (Dim i = 0; i < config_.num_hidden_layers; ++i) x = layer(x, "bert.encoder.layer." + std::to_string(i));
    return x;
  }
  Variable pooled(const Variable& x) const {
    return tanh(dense(gather_rows(x, batch_.first_rows), "bert.pooler.dense"));
  }

 private:
  /// [hidden, 3 · hidden]: ones on the diagonal of one third.
  Variable third_of(Dim third) const {
    const Dim hidden = config_.hidden_size;
    std::vector<double> ones(static_cast<std::size_t>(hidden * 3 * hidden), 0.0);
    for (Dim i = 0; i < hidden; ++i) ones[static_cast<std::size_t>(i * 3 * hidden + third * hidden + i)] = 1;
    return Variable(ops::from_host(ones, {hidden, 3 * hidden}, parameters_.backend()));
  }

  const bert::Config& config_;
  const nn::ParameterSet& parameters_;
  const bert::PackedBatch& batch_;
  const nn::Randomness& randomness_;
};

void check_equal(const Variable& got, const Variable& expected) {
  const std::vector<double> a = ops::to_host<double>(got.value()), b = ops::to_host<double>(expected.value());
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = support::worst_of(worst, std::abs(a[i] - b[i]));
  CHECK(worst <= 1e-12);
}

/// `body(by hand, batch, randomness)` in evaluation and in training.
template <class Model, class Body>
void compare(Model& model, const bert::Config& config, const Body& body) {
  Backend& backend = small::cpu();
  const nn::ParameterSet parameters(model, backend, {.dtype = DType::f64});
  small::disturb(parameters);
  const bert::PackedBatch batch = bert::pack(small::sequences(), backend);
  const NoGrad guard;
  for (const nn::Randomness& randomness : {nn::Randomness{}, batch.randomness(31)}) {
    CAPTURE(randomness.training);
    body(ByHand(config, parameters, batch, randomness), batch, randomness);
  }
}

bert::Config config_with_dropout() {
  bert::Config config = small::config(Activation::gelu);
  config.hidden_dropout_prob = .3;
  config.attention_probs_dropout_prob = .2;
  config.classifier_dropout = .4;
  return config;
}

}  // namespace

TEST_CASE("pre-training equals BERT written out by hand, and its losses are sums over the step's counts") {
  const bert::Config config = config_with_dropout();
  bert::ForPretraining model(config);
  compare(model, config, [&](const ByHand& hand, const bert::PackedBatch& batch, const nn::Randomness& randomness) {
    Backend& backend = batch.token_ids.backend();
    const bert::ForPretraining::Targets targets{.masked_rows = small::indices({2, 11, 19}, backend),
                                                .masked_labels = small::indices({3, 22, 7}, backend),
                                                .next_sentence = small::indices({1, 0, 0, 1}, backend),
                                                .masked_count = 10,
                                                .sequence_count = 16};
    const auto result = model(batch, targets, randomness, bert::ForPretraining::Keep::logits);
    const Variable x = hand.encoder();
    check_equal(result.pooled, hand.pooled(x));
    const std::string head = "cls.predictions.transform";
    const Variable masked = gelu(hand.dense(gather_rows(x, targets.masked_rows), head + ".dense"));
    const Variable logits =
        linear(hand.norm(masked, head + ".LayerNorm"), hand.named("bert.embeddings.word_embeddings.weight"),
               hand.named("cls.predictions.bias"));
    const Variable next = hand.dense(hand.pooled(x), "cls.seq_relationship");
    check_equal(result.masked_lm_logits, logits);
    check_equal(result.next_sentence_logits, next);
    check_equal(result.masked_lm_loss, softmax_cross_entropy(logits, targets.masked_labels, 10));
    check_equal(result.next_sentence_loss, softmax_cross_entropy(next, targets.next_sentence, 16));
  });
}

TEST_CASE("the classifiers equal BERT written out by hand: dropout, then a dense layer") {
  const bert::Config config = config_with_dropout();
  bert::ForSequenceClassification sequences(config, 3);
  compare(sequences, config, [&](const ByHand& hand, const bert::PackedBatch& batch, const nn::Randomness& randomness) {
    const Dropout before = randomness.rows(batch.first_rows).dropout(.4, hash_name("classifier."));
    check_equal(sequences(batch, randomness), hand.dense(dropout(hand.pooled(hand.encoder()), before), "classifier"));
  });
  bert::ForTokenClassification tokens(config, 4);
  compare(tokens, config, [&](const ByHand& hand, const bert::PackedBatch& batch, const nn::Randomness& randomness) {
    const Dropout before = randomness.dropout(.4, hash_name("classifier."));
    check_equal(tokens(batch, randomness), hand.dense(dropout(hand.encoder(), before), "classifier"));
  });
}

TEST_CASE("the answer head is a dense layer, and its loss half the sum of two softmaxes over each sequence") {
  const bert::Config config = config_with_dropout();
  bert::ForQuestionAnswering model(config);
  compare(model, config, [&](const ByHand& hand, const bert::PackedBatch& batch, const nn::Randomness& randomness) {
    const Variable logits = model(batch, randomness);
    check_equal(logits, hand.dense(hand.encoder(), "qa_outputs"));
    const bert::ForQuestionAnswering::Spans spans{.starts = {3, 0, 1, 5}, .ends = {8, 0, 3, 5}, .count = 6};
    const std::vector<double> scores = ops::to_host<double>(logits.value());
    double loss = 0;
    for (std::size_t s = 0; s < 4; ++s)
      for (const int column : {0, 1}) {
        double total = 0;
        const auto score = [&](std::int32_t place) {
          return scores[static_cast<std::size_t>(2 * (batch.offsets[s] + place) + column)];
        };
        for (std::int32_t i = 0; i < batch.offsets[s + 1] - batch.offsets[s]; ++i) total += std::exp(score(i));
        loss += std::log(total) - score(column == 0 ? spans.starts[s] : spans.ends[s]);
      }
    CHECK(ops::item(bert::ForQuestionAnswering::loss(logits, batch, spans).value()) ==
          doctest::Approx(loss / 2 / 6).epsilon(1e-12));
  });
}

TEST_CASE("a row's key is of its example and its place in it") {
  Backend& backend = small::cpu();
  const std::vector<bert::Sequence> sequences = small::sequences();
  const bert::PackedBatch batch = bert::pack(sequences, backend);
  std::vector<std::int64_t> expected;
  for (const bert::Sequence& s : sequences)
    for (std::size_t p = 0; p < s.token_ids.size(); ++p) expected.push_back(static_cast<std::int64_t>(mix(s.key, p)));
  CHECK(ops::to_host<std::int64_t>(batch.row_keys) == expected);
}
