// The pre-training model of golden_model on any backend: outputs, losses and gradients against PyTorch's.
#pragma once
#include <string>
#include <vector>

#include "bert/directory/model_directory.h"
#include "bert/network/golden.h"
#include "bert/network/heads.h"

namespace bertrand::golden {

inline const char* const kFolders[] = {"pretraining_gelu", "pretraining_gelu_new"};

/// A model with the weights of its folder, all of them found.
struct Loaded {
  Loaded(const Case& golden, DType dtype, Backend& backend = cpu())
      : model(golden.config), parameters(model, backend, {.dtype = dtype, .initialize = false}) {
    const nn::LoadReport report = bert::load_weights(golden.directory, parameters);
    CHECK(report.missing.empty());
    CHECK(report.unused.empty());
  }
  bert::ForPretraining model;
  nn::ParameterSet parameters;
};

inline bert::ForPretraining::Targets targets_of(const Case& golden, const bert::PackedBatch& batch,
                                                Backend& backend = cpu()) {
  std::vector<std::int32_t> rows, labels;
  for (const auto& masked : golden.info["masked"]) {
    rows.push_back(batch.offsets[masked[0].get<std::size_t>()] + masked[1].get<std::int32_t>());
    labels.push_back(masked[2]);
  }
  return {.masked_rows = indices(rows, backend),
          .masked_labels = indices(labels, backend),
          .next_sentence = indices(golden.info["next_sentence_labels"], backend),
          .masked_count = static_cast<double>(rows.size()),
          .sequence_count = static_cast<double>(batch.sequences)};
}

inline void check_outputs(const Case& golden, DType dtype, double tolerance, Backend& backend = cpu()) {
  const Loaded loaded(golden, dtype, backend);
  const bert::PackedBatch batch = golden.batch(backend);
  const NoGrad no_grad;
  std::vector<Variable> hidden;
  loaded.model.bert(batch, {}, {}, &hidden);
  REQUIRE(static_cast<Dim>(hidden.size()) == golden.config.num_hidden_layers + 1);
  for (std::size_t i = 0; i < hidden.size(); ++i)
    CHECK(golden.difference(hidden[i].value(), "hidden." + std::to_string(i)) <= tolerance);

  const auto result = loaded.model(batch, targets_of(golden, batch, backend), {}, bert::ForPretraining::Keep::logits);
  CHECK(golden.difference(result.pooled.value(), "pooled") <= tolerance);
  CHECK(golden.difference(result.masked_lm_logits.value(), "masked_lm_logits") <= tolerance);
  CHECK(golden.difference(result.next_sentence_logits.value(), "next_sentence_logits") <= tolerance);
  const auto loss_difference = [&](const Variable& loss, const char* name) {
    return std::abs(ops::item(loss.value()) - golden.info[name].get<double>());
  };
  CHECK(loss_difference(result.masked_lm_loss, "masked_lm_loss") <= tolerance);
  CHECK(loss_difference(result.next_sentence_loss, "next_sentence_loss") <= tolerance);
}

/// ‖gradients − PyTorch's‖ / ‖PyTorch's‖ over all parameters, in f16 with a loss scale.
inline double gradient_error(const Case& golden, DType dtype, Backend& backend = cpu()) {
  Loaded loaded(golden, dtype, backend);
  const bert::PackedBatch batch = golden.batch(backend);
  const auto result = loaded.model(batch, targets_of(golden, batch, backend), {}, bert::ForPretraining::Keep::losses);
  const double scale = dtype == DType::f16 ? 1024 : 1;
  backward(add(result.masked_lm_loss, result.next_sentence_loss), ops::full({1}, scale, DType::f32, backend));
  loaded.parameters.complete_gradients();
  double apart = 0, size = 0;
  for (const auto& segment : loaded.parameters.segments()) {
    const auto got = ops::to_host<double>(loaded.parameters.gradient(segment)),
               expected = golden.figures("grad." + segment.name);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      apart += (got[i] / scale - expected[i]) * (got[i] / scale - expected[i]);
      size += expected[i] * expected[i];
    }
  }
  return std::sqrt(apart / size);
}

/// Outputs, losses and gradients in the half types, within what their digits allow.
inline void check_half_types(const Case& golden, Backend& backend = cpu()) {
  check_outputs(golden, DType::bf16, 5e-2, backend);
  check_outputs(golden, DType::f16, 1e-2, backend);
  CHECK(gradient_error(golden, DType::bf16, backend) <= 2e-2);
  CHECK(gradient_error(golden, DType::f16, backend) <= 3e-3);
}

}  // namespace bertrand::golden
