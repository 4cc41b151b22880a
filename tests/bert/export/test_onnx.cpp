// What an ONNX model holds. That ONNX Runtime computes the right numbers with it is for bench/peers/check_onnx.py.
#include <doctest/doctest.h>

#include <set>

#include "bert/export/exported_bert.h"
#include "bert/export/onnx_bert.h"
#include "io/sha256.h"
#include "io/staged_directory.h"
#include "io/version.h"
#include "support/decoded_onnx.h"
#include "support/faulty_files.h"
#include "tensor/ops.h"

using namespace bertrand;
using bert::Architecture;
using support::DecodedOnnx;
using Ops = std::vector<std::string>;

namespace {

exporting::OnnxBert view(const support::ExportedBert& bert) {
  return {.config = bert.config,
          .architecture = bert.architecture,
          .pooler_layer = bert.pooler_layer,
          .parameters = bert.parameters};
}

/// model.onnx as written into a directory of its own.
DecodedOnnx written(const support::ExportedBert& bert, const std::filesystem::path& directory,
                    const exporting::onnx::FileOptions& options = {}) {
  std::filesystem::create_directory(directory);
  exporting::write_onnx(io::Files::system(), directory, view(bert), options);
  return DecodedOnnx(support::read_text(directory / "model.onnx"));
}

DecodedOnnx written(const support::ExportedBert& bert) {
  const support::TemporaryDirectory directory;
  return written(bert, directory / "out");
}

bool is_dense(const std::string& name) {
  return name.ends_with(".weight") && name.find("embeddings") == std::string::npos &&
         name.find("LayerNorm") == std::string::npos;
}

/// The bytes of a weight as ONNX is to store them.
std::string stored(const nn::ParameterSet& parameters, const nn::ParameterSet::Segment& segment) {
  const std::vector<float> values = ops::to_host<float>(parameters.master(segment));
  std::vector<float> turned = values;
  if (is_dense(segment.name)) {
    const auto out = static_cast<std::size_t>(segment.shape[0]), in = static_cast<std::size_t>(segment.shape[1]);
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t o = 0; o < out; ++o) turned[i * out + o] = values[o * in + i];
  }
  return {reinterpret_cast<const char*>(turned.data()), turned.size() * sizeof(float)};
}

}  // namespace

TEST_CASE("an ONNX model says opset 17 and IR 8 and takes batches of any shape") {
  const DecodedOnnx model = written(support::ExportedBert(Architecture::sequence_classification));
  CHECK(model.ir_version == 8);
  CHECK(model.opset == 17);
  CHECK(model.domain == "");
  CHECK(model.producer == "bertrand");
  CHECK(model.producer_version == version());
  CHECK(model.graph_name == "bert");  // ONNX wants one
  CHECK(model.inputs == Ops{"input_ids i64 [batch_size, sequence_length]",
                            "attention_mask i64 [batch_size, sequence_length]",
                            "token_type_ids i64 [batch_size, sequence_length]"});
}

TEST_CASE("a layer in ONNX has exactly the operators that ONNX Runtime fuses") {
  const DecodedOnnx model = written(support::ExportedBert(Architecture::sequence_classification));
  CHECK(model.ops("bert.embeddings") ==
        Ops{"Gather", "Gather", "Shape", "Gather", "Unsqueeze", "Slice", "Gather", "Add", "Add", "LayerNormalization"});
  CHECK(model.ops("bert.mask") == Ops{"Unsqueeze", "Unsqueeze", "Cast", "Sub", "Mul"});
  for (const std::string layer : {"bert.encoder.layer.0.", "bert.encoder.layer.1."}) {
    for (const char* name : {"query", "key", "value"})
      CHECK(model.ops(layer + "attention.self." + name) == Ops{"MatMul", "Add", "Reshape", "Transpose"});
    CHECK(model.ops(layer + "attention.self/") ==
          Ops{"MatMul", "Div", "Add", "Softmax", "MatMul", "Transpose", "Reshape"});
    CHECK(model.ops(layer + "attention.output") == Ops{"MatMul", "Add", "Add", "LayerNormalization"});
    CHECK(model.ops(layer + "intermediate") == Ops{"MatMul", "Add", "Div", "Erf", "Add", "Mul", "Mul"});
    CHECK(model.ops(layer + "output") == Ops{"MatMul", "Add", "Add", "LayerNormalization"});
  }
  CHECK(model.ops("bert.pooler") == Ops{"Gather", "Gemm", "Tanh"});
  CHECK(model.ops("classifier") == Ops{"Gemm"});
  CHECK(model.nodes.size() == 87);
}

TEST_CASE("constants and attributes of an ONNX layer are those of the model") {
  const DecodedOnnx model = written(support::ExportedBert(Architecture::encoder));
  std::map<std::string, const DecodedOnnx::Node*> nodes;
  for (const auto& node : model.nodes) nodes[node.name] = &node;
  const std::string self = "bert.encoder.layer.1.attention.self";
  const auto values = [&](const std::string& name) {
    const std::string& raw = model.find(name)->raw;
    std::vector<std::int64_t> all(raw.size() / 8);
    std::memcpy(all.data(), raw.data(), raw.size());
    return all;
  };
  CHECK(values(nodes.at(self + ".key/Reshape")->inputs[1]) == std::vector<std::int64_t>{0, 0, 3, 4});
  CHECK(nodes.at(self + ".query/Transpose")->attributes.at("perm") == "0 2 1 3");
  CHECK(nodes.at(self + ".key/Transpose")->attributes.at("perm") == "0 2 3 1");
  CHECK(nodes.at(self + "/Softmax")->attributes.at("axis") == "-1");
  CHECK(values(nodes.at(self + "/Reshape")->inputs[1]) == std::vector<std::int64_t>{0, 0, 12});
  float scale = 0;
  std::memcpy(&scale, model.find(nodes.at(self + "/Div")->inputs[1])->raw.data(), sizeof scale);
  CHECK(scale == 2);  // √4
  CHECK(nodes.at("bert.embeddings.LayerNorm/LayerNormalization")->attributes ==
        std::map<std::string, std::string>{{"axis", "-1"}, {"epsilon", "1e-12"}});
  CHECK(values("bert.embeddings.position_ids").size() == 23);
  CHECK(values("bert.embeddings.position_ids")[22] == 22);
}

TEST_CASE("the nodes of an ONNX model have the axes, places and numbers of their formulas") {
  const DecodedOnnx model = written(support::ExportedBert(Architecture::encoder));
  const auto node = [&](const std::string& name) {
    for (const auto& one : model.nodes)
      if (one.name == name) return one;
    FAIL(name);
    return DecodedOnnx::Node{};
  };
  const auto constant = [&]<class Number>(Number number, const std::string& name, std::size_t input) {
    const auto* const tensor = model.find(node(name).inputs.at(input));
    REQUIRE(tensor != nullptr);
    REQUIRE(tensor->raw.size() == sizeof number);
    std::memcpy(&number, tensor->raw.data(), sizeof number);
    return number;
  };
  for (const char* name : {"Gather", "Gather_2", "Gather_3", "Gather_4"})
    CHECK(node(std::string("bert.embeddings/") + name).attributes.at("axis") == "0");
  CHECK(constant(std::int64_t{-1}, "bert.embeddings/Gather_3", 1) == 1);  // the length, of [batch, length]
  CHECK(node("bert.pooler/Gather").attributes.at("axis") == "1");
  CHECK(constant(std::int64_t{-1}, "bert.pooler/Gather", 1) == 0);  // the first token of each sequence
  CHECK(constant(-1.0F, "bert.mask/Sub", 0) == 1);
  CHECK(constant(-1.0F, "bert.mask/Mul", 1) == -10000);
  CHECK(constant(-1.0F, "bert.encoder.layer.0.intermediate.dense/Add_2", 1) == 1);  // 1 + erf
  const std::string self = "bert.encoder.layer.0.attention.self";
  CHECK(node(self + ".value/Transpose").attributes.at("perm") == "0 2 1 3");
  CHECK(node(self + "/Transpose").attributes.at("perm") == "0 2 1 3");
}

TEST_CASE("each activation has its operators in ONNX") {
  const auto ops = [](Activation activation) {
    return written(support::ExportedBert(Architecture::encoder, activation)).ops("bert.encoder.layer.0.intermediate");
  };
  CHECK(ops(Activation::gelu) == Ops{"MatMul", "Add", "Div", "Erf", "Add", "Mul", "Mul"});
  CHECK(ops(Activation::gelu_tanh) == Ops{"MatMul", "Add", "Pow", "Mul", "Add", "Mul", "Tanh", "Add", "Mul", "Mul"});
  CHECK(ops(Activation::relu) == Ops{"MatMul", "Add", "Relu"});
}

TEST_CASE("every weight of every head is in the ONNX model under its name") {
  for (const auto& [name, architecture] : bert::architectures()) {
    CAPTURE(name);
    const support::ExportedBert bert(architecture);
    const DecodedOnnx model = written(bert);
    std::size_t weights = 0;
    for (const auto& tensor : model.tensors) weights += tensor.type == 1 && !tensor.dims.empty();
    CHECK(weights == bert.parameters.segments().size());
    for (const auto& segment : bert.parameters.segments()) {
      CAPTURE(segment.name);
      const DecodedOnnx::Tensor* tensor = model.find(segment.name);
      REQUIRE(tensor != nullptr);
      std::vector<std::int64_t> dims(segment.shape.dims().begin(), segment.shape.dims().end());
      if (is_dense(segment.name)) std::swap(dims[0], dims[1]);
      CHECK(tensor->dims == dims);
      CHECK(tensor->type == 1);
      CHECK(tensor->raw == stored(bert.parameters, segment));
    }
  }
}

TEST_CASE("every name in an ONNX model is given once and before it is used") {
  for (const auto& [name, architecture] : bert::architectures()) {
    CAPTURE(name);
    const DecodedOnnx model = written(support::ExportedBert(architecture));
    std::set<std::string> known{"input_ids", "attention_mask", "token_type_ids"}, nodes, used;
    for (const auto& tensor : model.tensors) CHECK(known.insert(tensor.name).second);
    for (const auto& node : model.nodes) {
      CAPTURE(node.name);
      CHECK(nodes.insert(node.name).second);
      for (const std::string& input : node.inputs) {
        CHECK(known.contains(input));
        used.insert(input);
      }
      REQUIRE(node.outputs.size() == 1);
      CHECK(known.insert(node.outputs[0]).second);
    }
    for (const std::string& output : model.outputs) {
      CHECK(known.contains(output.substr(0, output.find(' '))));
      used.insert(output.substr(0, output.find(' ')));
    }
    CHECK(used == known);
  }
}

TEST_CASE("each head has the outputs and the task of transformers") {
  const auto check = [](const support::ExportedBert& bert, const Ops& outputs, const std::string& task) {
    const DecodedOnnx model = written(bert);
    CHECK(model.outputs == outputs);
    CHECK(model.metadata.at("task") == task);
    CHECK(model.metadata.at("architecture") == io::name_in(bert::architectures(), bert.architecture));
  };
  const auto of = [](Architecture architecture) { return support::ExportedBert(architecture); };
  using enum Architecture;
  check(of(sequence_classification), {"logits f32 [batch_size, 3]"}, "text-classification");
  check(of(multiple_choice), {"logits f32 [batch_size, num_choices]"}, "multiple-choice");
  check(of(token_classification), {"logits f32 [batch_size, sequence_length, 3]"}, "token-classification");
  check(of(question_answering),
        {"start_logits f32 [batch_size, sequence_length]", "end_logits f32 [batch_size, sequence_length]"},
        "question-answering");
  check(of(masked_lm), {"logits f32 [batch_size, sequence_length, 31]"}, "fill-mask");
  check(of(pretraining),
        {"prediction_logits f32 [batch_size, sequence_length, 31]", "seq_relationship_logits f32 [batch_size, 2]"},
        "pretraining");
  check(of(encoder), {"last_hidden_state f32 [batch_size, sequence_length, 12]", "pooler_output f32 [batch_size, 12]"},
        "feature-extraction");
  check(support::ExportedBert(encoder, Activation::gelu, bert::PoolerLayer::absent),
        {"last_hidden_state f32 [batch_size, sequence_length, 12]"}, "feature-extraction");
}

TEST_CASE("in ONNX choices are rows of their own until they have their scores") {
  const DecodedOnnx model = written(support::ExportedBert(Architecture::multiple_choice));
  CHECK(model.inputs == Ops{"input_ids i64 [batch_size, num_choices, sequence_length]",
                            "attention_mask i64 [batch_size, num_choices, sequence_length]",
                            "token_type_ids i64 [batch_size, num_choices, sequence_length]"});
  Ops flat;
  for (int input = 0; input < 3; ++input) flat.insert(flat.end(), {"Shape", "Slice", "Concat", "Reshape"});
  flat.insert(flat.end(), {"Shape", "Slice", "Reshape"});
  CHECK(model.ops("choices") == flat);
}

TEST_CASE("in ONNX the first of the two outputs for answers is the start") {
  const DecodedOnnx model = written(support::ExportedBert(Architecture::question_answering));
  std::map<std::string, std::string> column_of;
  for (const auto& node : model.nodes)
    if (node.outputs[0].ends_with("_logits")) column_of[node.outputs[0]] = model.find(node.inputs[1])->raw;
  CHECK(column_of["start_logits"] == std::string(8, '\0'));
  CHECK(column_of["end_logits"] == "\1" + std::string(7, '\0'));
}

TEST_CASE("an ONNX model tells its labels and the hash of its weights") {
  const support::ExportedBert bert(Architecture::token_classification);
  const DecodedOnnx model = written(bert);
  CHECK(model.metadata.at("id2label") == R"({"0":"a","1":"b","2":"c"})");
  io::Sha256 hash;
  for (const auto& tensor : model.tensors)
    if (tensor.type == 1 && !tensor.dims.empty()) hash.add(tensor.raw);
  CHECK(model.metadata.at("weights_sha256") == hash.hex());
  CHECK_FALSE(written(support::ExportedBert(Architecture::encoder)).metadata.contains("id2label"));
}

TEST_CASE("the decoder of masked words is the table of word embeddings and no second one") {
  const DecodedOnnx model = written(support::ExportedBert(Architecture::masked_lm));
  CHECK(model.ops("cls.predictions.decoder") == Ops{"Transpose", "MatMul", "Add"});
  for (const auto& node : model.nodes)
    if (node.name == "cls.predictions.decoder/Transpose")
      CHECK(node.inputs == Ops{"bert.embeddings.word_embeddings.weight"});
  CHECK(model.find("cls.predictions.decoder.weight") == nullptr);
}

TEST_CASE("with external data the weights lie in a file of their own at multiples of 4096") {
  const support::TemporaryDirectory directory;
  const support::ExportedBert bert(Architecture::encoder);
  const DecodedOnnx inside = written(bert, directory / "inside");
  CHECK_FALSE(std::filesystem::exists(directory / "inside" / "model.onnx.data"));
  const DecodedOnnx beside = written(bert, directory / "beside", {.external_data = true});
  const std::string data = support::read_text(directory / "beside" / "model.onnx.data");
  std::size_t end = 0;
  for (const auto& tensor : beside.tensors) {
    CAPTURE(tensor.name);
    const std::string& raw = inside.find(tensor.name)->raw;
    if (raw.size() < 1024 || tensor.type == 7) {  // shapes are inferred from what is small
      CHECK(tensor.raw == raw);
      CHECK(tensor.location == 0);
      continue;
    }
    CHECK(tensor.raw.empty());
    CHECK(tensor.location == 1);
    CHECK(tensor.external.at("location") == "model.onnx.data");
    const std::size_t offset = std::stoul(tensor.external.at("offset"));
    CHECK(offset % 4096 == 0);
    CHECK(offset >= end);
    CHECK(offset < end + 4096);
    CHECK(tensor.external.at("length") == std::to_string(raw.size()));
    CHECK(data.substr(offset, raw.size()) == raw);
    end = offset + raw.size();
  }
  CHECK(end == data.size());
  CHECK(end > 4096);
  CHECK(beside.metadata == inside.metadata);
}

TEST_CASE("weights beyond the limit of a model go to a file of their own unasked") {
  const support::TemporaryDirectory directory;
  const support::ExportedBert bert(Architecture::encoder);
  std::uint64_t bytes = 0;
  for (const auto& segment : bert.parameters.segments())
    bytes += static_cast<std::uint64_t>(segment.count()) * sizeof(float);
  written(bert, directory / "small", {.most_bytes = bytes + 10'000});
  CHECK_FALSE(std::filesystem::exists(directory / "small" / "model.onnx.data"));
  written(bert, directory / "large", {.most_bytes = bytes});
  CHECK(std::filesystem::exists(directory / "large" / "model.onnx.data"));
}

TEST_CASE("an ONNX model that was written outlives a power failure, and so does its file of weights") {
  const support::ExportedBert bert(Architecture::encoder);
  const support::TemporaryDirectory disk, after;
  support::RecordingFiles files(disk / "");
  files.make_directory(disk / "out");
  exporting::write_onnx(files, disk / "out", view(bert), {.external_data = true});
  files.sync_directory(disk / "out");
  files.sync_directory(disk / "");
  files.restore(files.calls(), support::Lost::everything, after / "");
  for (const std::string file : {"out/model.onnx", "out/model.onnx.data"})
    CHECK((support::read_text(after / file) == support::read_text(disk / file)));
}

TEST_CASE("whatever call of the disk fails an ONNX model is there whole or not at all") {
  const support::ExportedBert bert(Architecture::encoder);
  for (const bool external : {false, true})
    for (int failing = 1;; ++failing) {
      const support::TemporaryDirectory directory;
      support::FailingFiles files(failing, "No space left on device");
      std::string message;
      try {
        io::StagedDirectory output(files, directory / "out", "output");
        exporting::write_onnx(files, output.path(), view(bert), {.external_data = external});
        output.publish();
      } catch (const Error& error) {
        CHECK(error.failure() == Failure::io);
        message = error.what();
      }
      if (files.calls() < failing) {  // all went well
        CHECK(message.empty());
        CHECK(failing > 10);
        break;
      }
      CHECK(message.find("No space left on device") != std::string::npos);
      CHECK(message.find('\n') == std::string::npos);
      if (!std::filesystem::exists(directory / "out")) CHECK(std::filesystem::is_empty(directory / ""));
      else CHECK(DecodedOnnx(support::read_text(directory / "out" / "model.onnx")).opset == 17);
    }
}
