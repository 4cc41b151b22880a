// export --format onnx: what lies in the directory, and what is refused.
#include <doctest/doctest.h>

#include <set>

#include "nn/tensor_file.h"
#include "support/decoded_onnx.h"
#include "support/small_heads.h"

using support::DecodedOnnx;
using support::Outcome;
using support::read_text;
namespace fs = std::filesystem;

namespace {

Outcome export_onnx(const fs::path& model, const fs::path& output, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"--model", model.string(), "--format", "onnx", "--output", output.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return support::run_program("export", arguments);
}

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

void set_architecture(const fs::path& model, const std::string& name) {
  auto config = nlohmann::json::parse(read_text(model / "config.json"));
  config["architectures"] = {name};
  support::write_text(model / "config.json", config.dump());
}

}  // namespace

TEST_CASE("an exported ONNX model lies beside the configuration and the tokenizer") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model", {"fish", "bird"});
  const Outcome outcome = export_onnx(directory / "model", directory / "out");
  CAPTURE(outcome.error);
  REQUIRE(outcome.code == 0);
  CHECK(names_in(directory / "out") ==
        std::set<std::string>{"config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json", "vocab.txt"});
  CHECK(read_text(directory / "out" / "config.json") == read_text(directory / "model" / "config.json"));
  const DecodedOnnx model(read_text(directory / "out" / "model.onnx"));
  CHECK(model.outputs == std::vector<std::string>{"logits f32 [batch_size, 2]"});
  CHECK(model.metadata.at("id2label") == R"({"0":"fish","1":"bird"})");
}

TEST_CASE("with --external-data the weights of an ONNX model lie beside it") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  REQUIRE(export_onnx(directory / "model", directory / "out", {"--external-data"}).code == 0);
  CHECK(names_in(directory / "out").contains("model.onnx.data"));
  const Outcome other =
      support::run_program("export", {"--model", (directory / "model").string(), "--format", "huggingface",
                                      "--external-data", "--output", (directory / "other").string()});
  CHECK(other.code == 2);
  CHECK(other.error == "error: --external-data: expected with --format onnx, got --format huggingface\n");
  CHECK_FALSE(fs::exists(directory / "other"));
}

TEST_CASE("the weights of a model in a half type are f32 in ONNX") {
  using namespace bertrand;
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  set_architecture(directory / "model", "BertModel");
  const auto backend = open_cpu({.threads = 1});
  support::SmallEncoder model(bert::read_config(directory / "model"));
  const nn::ParameterSet parameters(model, *backend, nn::ParameterSet::Options{.dtype = DType::f16});
  std::vector<nn::NamedTensor> halves;
  for (const auto& segment : parameters.segments()) halves.push_back({segment.name, parameters.value(segment)});
  io::FileWriter out(io::Files::system(), directory / "model" / "model.safetensors");
  nn::write_tensors(out, halves);
  out.finish();
  REQUIRE(export_onnx(directory / "model", directory / "out").code == 0);
  const DecodedOnnx onnx(read_text(directory / "out" / "model.onnx"));
  const std::string name = "bert.embeddings.position_embeddings.weight";
  const auto expected = ops::to_host<float>(ops::cast(parameters.value(*parameters.find(name)), DType::f32));
  CHECK(onnx.find(name)->type == 1);
  CHECK(onnx.find(name)->raw ==
        std::string(reinterpret_cast<const char*>(expected.data()), expected.size() * sizeof(float)));
}

TEST_CASE("a model whose head is not known is refused and nothing is written") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  set_architecture(directory / "model", "BertForNextSentencePrediction");
  const Outcome outcome = export_onnx(directory / "model", directory / "out");
  CHECK(outcome.code == 4);
  CHECK(outcome.error == "error: " + (directory / "model" / "config.json").string() +
                             ": architectures: expected one of BertForSequenceClassification, BertForMultipleChoice, "
                             "BertForTokenClassification, BertForQuestionAnswering, BertForMaskedLM, "
                             "BertForPreTraining, BertModel, got [\"BertForNextSentencePrediction\"]\n");
  CHECK(names_in(directory / "") == std::set<std::string>{"model"});
}
