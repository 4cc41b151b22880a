// Every parameter of whole models against central differences in double precision, with dropout: masks are functions of
// names and keys, so a training pass can be differentiated like any other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "bert/network/heads.h"
#include "bert/network/small_bert.h"

using namespace bertrand;

namespace {

constexpr double kStep = 1e-5;

/// Compares the gradient of one variable with differences of `loss`: along a direction in which every entry moves, and
/// for some entries.
template <class Loss>
void check_segment(const nn::ParameterSet& parameters, const nn::ParameterSet::Segment& segment, const Loss& loss) {
  const Tensor value = parameters.value(segment);
  const std::vector<double> saved = ops::to_host<double>(value),
                            gradient = ops::to_host<double>(parameters.gradient(segment));
  const auto slope = [&](const std::vector<double>& direction) {
    const auto at = [&](double step) {
      std::vector<double> moved = saved;
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
      ops::copy_into(ops::from_host(moved, value.shape(), value.backend()), value);
      return loss();
    };
    const double above = at(kStep), below = at(-kStep);
    ops::copy_into(ops::from_host(saved, value.shape(), value.backend()), value);
    return (above - below) / (2 * kStep);
  };
  double size = 0;
  for (const double g : gradient) size = std::max(size, std::abs(g));
  const double allowed = 2e-7 * size + 2e-9;  // what rounding of the loss leaves

  Random random(hash_name(segment.name));
  std::vector<double> direction(saved.size());
  double expected = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    direction[i] = (2 * random.uniform() - 1) / std::sqrt(static_cast<double>(saved.size()));
    expected += gradient[i] * direction[i];
  }
  INFO(segment.name);
  CHECK(std::abs(slope(direction) - expected) <= allowed);
  for (int sample = 0; sample < 4; ++sample) {
    const auto entry = static_cast<std::size_t>(random.below(static_cast<std::uint32_t>(saved.size())));
    std::vector<double> one(saved.size(), 0.0);
    one[entry] = 1;
    INFO("entry " << entry << ": backward says " << gradient[entry]);
    CHECK(std::abs(slope(one) - gradient[entry]) <= allowed);
  }
}

/// `loss` of the model on a training pass over the small batch. Nothing depends on the variables `idle`.
template <class Model, class Loss>
void check_model(Model& model, const Loss& loss, const std::set<std::string>& idle = {}) {
  Backend& backend = small::cpu();
  nn::ParameterSet parameters(model, backend, {.dtype = DType::f64});
  small::disturb(parameters);
  const bert::PackedBatch batch = bert::pack(small::sequences(), backend);
  const nn::Randomness randomness = batch.randomness(77);
  parameters.zero_gradients();
  backward(loss(model, batch, randomness));
  parameters.complete_gradients();
  const auto value = [&] {
    const NoGrad guard;
    return ops::item(loss(model, batch, randomness).value());
  };
  double least = INFINITY;
  for (const auto& segment : parameters.segments()) {
    check_segment(parameters, segment, value);
    // An attention key's bias moves every score of a query alike.
    if (!segment.name.ends_with("self.key.bias") && !idle.contains(segment.name))
      least = std::min(least, ops::item(ops::norm(parameters.gradient(segment))));
  }
  CHECK(least > 1e-4);  // every other variable takes part
}

constexpr Activation kActivations[] = {Activation::gelu, Activation::gelu_tanh};

}  // namespace

TEST_CASE("every variable of pre-training has the gradient of its loss, the tied word embeddings too") {
  for (const Activation activation : kActivations) {
    bert::ForPretraining model(small::config(activation));
    check_model(model,
                [](const bert::ForPretraining& m, const bert::PackedBatch& batch, const nn::Randomness& randomness) {
                  Backend& backend = batch.token_ids.backend();
                  const auto result = m(batch,
                                        {.masked_rows = small::indices({2, 5, 11, 11, 19}, backend),
                                         .masked_labels = small::indices({3, 0, 22, 7, 7}, backend),
                                         .next_sentence = small::indices({1, 0, 0, 1}, backend),
                                         .masked_count = 7,
                                         .sequence_count = 4},
                                        randomness, bert::ForPretraining::Keep::losses);
                  return add(result.masked_lm_loss, result.next_sentence_loss);
                });
  }
}

TEST_CASE("every variable of a sequence classifier has the gradient of its loss, for classes, numbers and yes or no") {
  const auto classes = [](const Variable& logits) {
    return softmax_cross_entropy(logits, small::indices({2, 0, -1, 1}, logits.value().backend()), 3);
  };
  const auto target = [](const Variable& logits) {
    return ops::cast(ops::from_host(std::vector<double>{1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0}, logits.shape(),
                                    logits.value().backend()),
                     logits.value().dtype());
  };
  for (const int kind : {0, 1, 2}) {
    CAPTURE(kind);
    bert::ForSequenceClassification model(small::config(Activation::gelu), 3);
    check_model(model, [&](const bert::ForSequenceClassification& m, const bert::PackedBatch& batch,
                           const nn::Randomness& randomness) {
      const Variable logits = m(batch, randomness);
      if (kind == 0) return classes(logits);
      return kind == 1 ? mse(logits, target(logits), 4) : binary_cross_entropy_with_logits(logits, target(logits), 12);
    });
  }
}

TEST_CASE("every variable of a token classifier has the gradient of its loss, with rows that have no label") {
  bert::ForTokenClassification model(small::config(Activation::gelu), 4);
  check_model(model, [](const bert::ForTokenClassification& m, const bert::PackedBatch& batch,
                        const nn::Randomness& randomness) {
    std::vector<std::int32_t> labels;
    for (std::int32_t i = 0; i < 20; ++i) labels.push_back(i % 3 == 0 ? -1 : i % 4);
    return softmax_cross_entropy(m(batch, randomness), small::indices(labels, batch.token_ids.backend()), 13);
  });
}

TEST_CASE("every variable of an answer finder has the gradient of its loss") {
  bert::ForQuestionAnswering model(small::config(Activation::relu));
  check_model(
      model,
      [](const bert::ForQuestionAnswering& m, const bert::PackedBatch& batch, const nn::Randomness& randomness) {
        return bert::ForQuestionAnswering::loss(m(batch, randomness), batch,
                                                {.starts = {3, 0, 1, 5}, .ends = {8, 0, 3, 5}, .count = 4});
      },
      // Biases of the last rows: they move the scores of all places alike.
      {"qa_outputs.bias", "bert.encoder.layer.1.output.LayerNorm.bias"});
}
