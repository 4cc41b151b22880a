#include <doctest/doctest.h>

#include "bert/directory/model_directory.h"
#include "bert/network/golden.h"
#include "bert/network/heads.h"

using namespace bertrand;
using golden::Case;
using golden::cpu;

namespace {

void load_all(const Case& golden, nn::ParameterSet& parameters) {
  const nn::LoadReport report = bert::load_weights(golden.directory, parameters);
  CHECK(report.missing.empty());
  CHECK(report.unused.empty());
}

Variable sequence_loss(const Case& golden, const Variable& logits) {
  const std::string kind = golden.info["kind"];
  const nlohmann::json& labels = golden.info["labels"];
  const auto examples = static_cast<double>(logits.shape()[0]);
  if (kind == "classification") return softmax_cross_entropy(logits, golden::indices(labels), examples);
  std::vector<double> targets;
  for (const auto& label : labels)
    if (label.is_array()) targets.insert(targets.end(), label.begin(), label.end());
    else targets.push_back(label);
  const Tensor target = ops::cast(ops::from_host(targets, logits.shape(), cpu()), logits.value().dtype());
  if (kind == "regression") return mse(logits, target, examples);
  return binary_cross_entropy_with_logits(logits, target, static_cast<double>(targets.size()));
}

/// What one kind of head computes, and the loss that its labels give.
struct Computed {
  std::vector<std::pair<std::string, Tensor>> outputs;
  Variable loss;
};

Computed compute(const Case& golden, const bert::ForSequenceClassification& model) {
  const Variable logits = model(golden.batch(), {});
  return {.outputs = {{"logits", logits.value()}}, .loss = sequence_loss(golden, logits)};
}

Computed compute(const Case& golden, const bert::ForTokenClassification& model) {
  const Variable logits = model(golden.batch(), {});
  const std::vector<std::int32_t> labels = golden.info["labels"];
  const auto counted = std::count_if(labels.begin(), labels.end(), [](std::int32_t label) { return label >= 0; });
  return {.outputs = {{"logits", logits.value()}},
          .loss = softmax_cross_entropy(logits, golden::indices(labels), static_cast<double>(counted))};
}

Computed compute(const Case& golden, const bert::ForQuestionAnswering& model) {
  const bert::PackedBatch batch = golden.batch();
  const Variable logits = model(batch, {});
  bert::ForQuestionAnswering::Spans spans{.count = static_cast<double>(batch.sequences)};
  for (const auto& label : golden.info["labels"]) {
    spans.starts.push_back(label[0]);
    spans.ends.push_back(label[1]);
  }
  return {.outputs = {{"start_logits", ops::slice(logits.value(), 1, 0, 1)},
                      {"end_logits", ops::slice(logits.value(), 1, 1, 2)}},
          .loss = bert::ForQuestionAnswering::loss(logits, batch, spans)};
}

void check_outputs(const Case& golden, const Computed& computed, double tolerance) {
  for (const auto& [name, value] : computed.outputs) {
    CAPTURE(name);
    CHECK(golden.difference(value, name) <= tolerance);
  }
  CHECK(std::abs(ops::item(computed.loss.value()) - golden.info["loss"].get<double>()) <= tolerance);
}

/// Outputs and loss in f64 and f32, every gradient in f64.
template <class Model, class... Arguments>
void check_head(const char* folder, const Case& golden, const Arguments&... arguments) {
  CAPTURE(folder);
  Model model(golden.config, arguments...);
  {
    nn::ParameterSet parameters(model, cpu(), {.dtype = DType::f32, .initialize = false});
    load_all(golden, parameters);
    check_outputs(golden, compute(golden, model), 2e-5);
  }
  nn::ParameterSet parameters(model, cpu(), {.dtype = DType::f64, .initialize = false});
  load_all(golden, parameters);
  const Computed computed = compute(golden, model);
  check_outputs(golden, computed, 1e-10);
  backward(computed.loss);
  parameters.complete_gradients();
  CHECK(golden.gradient_difference(parameters) <= 1e-9);
}

}  // namespace

TEST_CASE("classification, regression and multi-label heads equal PyTorch's, with every gradient") {
  for (const char* folder : {"classification", "regression", "multi_label"}) {
    if (!golden::present(folder)) return;
    const Case golden(folder);
    check_head<bert::ForSequenceClassification>(folder, golden, golden.info["num_labels"].get<Dim>());
  }
}

TEST_CASE("the token head equals PyTorch's, with every gradient") {
  if (!golden::present("token")) return;
  const Case golden("token");
  check_head<bert::ForTokenClassification>("token", golden, golden.info["num_labels"].get<Dim>());
}

TEST_CASE("the answer span head equals PyTorch's, with every gradient") {
  if (!golden::present("question_answering")) return;
  const Case golden("question_answering");
  check_head<bert::ForQuestionAnswering>("question_answering", golden);
}
