// The graph of a SavedModel, read back: what it asks for, what it gives, and what it is made of.
#include "bert/export/saved_model_bert.h"

#include <doctest/doctest.h>

#include <set>

#include "bert/export/decoded_saved_model.h"
#include "support/refusal.h"

using namespace bertrand;
using bert::Architecture;
using bert::PoolerLayer;
using exporting::tf::Dims;
using support::DecodedNode;
using support::DecodedSavedModel;
using support::DecodedTensor;

namespace {

constexpr std::uint64_t kFloat = 1, kInt32 = 3, kString = 7;

bert::Config small_config() {
  bert::Config config{.vocab_size = 15,
                      .hidden_size = 16,
                      .num_hidden_layers = 2,
                      .num_attention_heads = 2,
                      .intermediate_size = 32,
                      .max_position_embeddings = 24};
  config.labels = {"fish", "bird", "none"};
  return config;
}

void add_dense(std::map<std::string, Dims>& weights, const std::string& scope, std::int64_t in, std::int64_t out) {
  weights[scope + "/kernel"] = {in, out};
  weights[scope + "/bias"] = {out};
}
void add_norm(std::map<std::string, Dims>& weights, const std::string& scope) {
  weights[scope + "/LayerNorm/gamma"] = weights[scope + "/LayerNorm/beta"] = {16};
}
void add_classifier(std::map<std::string, Dims>& weights, const std::string& scope, std::int64_t outputs) {
  weights[scope + "output_weights"] = {outputs, 16};
  weights[scope + "output_bias"] = {outputs};
}

/// Google's names and shapes, from its modeling.py and the scripts beside it.
std::map<std::string, Dims> google_weights(Architecture architecture, PoolerLayer pooler_layer) {
  using enum Architecture;
  std::map<std::string, Dims> weights{{"bert/embeddings/word_embeddings", {15, 16}},
                                      {"bert/embeddings/position_embeddings", {24, 16}},
                                      {"bert/embeddings/token_type_embeddings", {2, 16}}};
  add_norm(weights, "bert/embeddings");
  for (const std::string layer : {"bert/encoder/layer_0/", "bert/encoder/layer_1/"}) {
    for (const char* part : {"attention/self/query", "attention/self/key", "attention/self/value"})
      add_dense(weights, layer + part, 16, 16);
    add_dense(weights, layer + "attention/output/dense", 16, 16);
    add_norm(weights, layer + "attention/output");
    add_dense(weights, layer + "intermediate/dense", 16, 32);
    add_dense(weights, layer + "output/dense", 32, 16);
    add_norm(weights, layer + "output");
  }
  if (architecture == sequence_classification || architecture == multiple_choice || architecture == pretraining ||
      (architecture == encoder && pooler_layer == PoolerLayer::present))
    add_dense(weights, "bert/pooler/dense", 16, 16);
  if (architecture == sequence_classification || architecture == token_classification) add_classifier(weights, "", 3);
  if (architecture == multiple_choice) add_classifier(weights, "", 1);
  if (architecture == question_answering) add_classifier(weights, "cls/squad/", 2);
  if (architecture == masked_lm || architecture == pretraining) {
    add_dense(weights, "cls/predictions/transform/dense", 16, 16);
    add_norm(weights, "cls/predictions/transform");
    weights["cls/predictions/output_bias"] = {15};
  }
  if (architecture == pretraining) add_classifier(weights, "cls/seq_relationship/", 2);
  return weights;
}

DecodedSavedModel saved(Architecture architecture, const bert::Config& config = small_config(),
                        PoolerLayer pooler_layer = PoolerLayer::present) {
  return support::decode_saved_model(
      exporting::saved_model_of({.config = config,
                                 .architecture = architecture,
                                 .pooler_layer = pooler_layer,
                                 .source = "",
                                 .weights = google_weights(architecture, pooler_layer)}));
}

const std::vector<Architecture> kAll = {Architecture::sequence_classification,
                                        Architecture::multiple_choice,
                                        Architecture::token_classification,
                                        Architecture::question_answering,
                                        Architecture::masked_lm,
                                        Architecture::pretraining,
                                        Architecture::encoder};

/// What the node of a constant says of its value.
template <class Value>
std::string constant(const Value& value) {
  exporting::tf::Graph graph({});
  graph.constant(value);
  const std::string bytes = graph.encoded();
  auto reader = support::decoding::reader(bytes);
  REQUIRE(reader.next());
  return support::decoding::node(reader.bytes()).attributes.at("value");
}

/// The node of an input: "^node", "node" or "node:1".
std::string node_of(std::string input) {
  if (input.starts_with('^')) input.erase(0, 1);
  return input.substr(0, input.find(':'));
}

}  // namespace

TEST_CASE("every node of a SavedModel reads nodes before it and every name is there once") {
  for (const Architecture architecture : kAll)
    for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::relu}) {
      bert::Config config = small_config();
      config.hidden_act = activation;
      std::set<std::string> before;
      for (const DecodedNode& node : saved(architecture, config).nodes) {
        CAPTURE(node.name);
        for (const std::string& input : node.inputs) {
          CAPTURE(input);
          CHECK(before.contains(node_of(input)));
        }
        CHECK(before.insert(node.name).second);
      }
    }
}

TEST_CASE("both signatures of a SavedModel give the outputs of its head") {
  const DecodedTensor ids{"input_ids:0", kInt32, {-1, -1}};
  using Outputs = std::map<std::string, DecodedTensor>;
  const auto output = [](const std::string& name, const Dims& dims) {
    return std::pair<const std::string, DecodedTensor>(name, DecodedTensor{name + ":0", kFloat, dims});
  };
  const std::map<Architecture, Outputs> expected = {
      {Architecture::sequence_classification, {output("logits", {-1, 3}), output("probabilities", {-1, 3})}},
      {Architecture::multiple_choice, {output("logits", {-1, 1})}},
      {Architecture::token_classification, {output("logits", {-1, -1, 3}), output("probabilities", {-1, -1, 3})}},
      {Architecture::question_answering, {output("start_logits", {-1, -1}), output("end_logits", {-1, -1})}},
      {Architecture::masked_lm, {output("logits", {-1, -1, 15})}},
      {Architecture::pretraining,
       {output("prediction_logits", {-1, -1, 15}), output("seq_relationship_logits", {-1, 2})}},
      {Architecture::encoder, {output("last_hidden_state", {-1, -1, 16}), output("pooler_output", {-1, 16})}}};
  for (const Architecture architecture : kAll) {
    const DecodedSavedModel model = saved(architecture);
    REQUIRE(model.signatures.size() == 2);
    const auto &by_ids = model.signatures.at("serving_default"), &by_examples = model.signatures.at("examples");
    CHECK(by_ids.inputs.size() == 3);
    CHECK(by_ids.inputs.at("input_ids") == ids);
    CHECK(by_ids.inputs.at("input_mask") == DecodedTensor{"input_mask:0", kInt32, {-1, -1}});
    CHECK(by_ids.inputs.at("segment_ids") == DecodedTensor{"segment_ids:0", kInt32, {-1, -1}});
    CHECK(by_examples.inputs.size() == 1);
    CHECK(by_examples.inputs.at("examples") == DecodedTensor{"examples:0", kString, {-1}});
    CHECK(by_ids.outputs == expected.at(architecture));
    CHECK(by_examples.outputs == by_ids.outputs);
    for (const auto* signature : {&by_ids, &by_examples}) {
      CHECK(signature->method == "tensorflow/serving/predict");
      for (const auto& [name, tensor] : signature->inputs) CHECK(model.find(node_of(tensor.tensor)));
      for (const auto& [name, tensor] : signature->outputs) CHECK(model.find(node_of(tensor.tensor)));
    }
  }
}

TEST_CASE("the first output of a span head is its begin and the second one its end") {
  const DecodedSavedModel model = saved(Architecture::question_answering);
  CHECK(model.find("start_logits")->inputs == std::vector<std::string>{"cls/squad/Unpack"});
  CHECK(model.find("end_logits")->inputs == std::vector<std::string>{"cls/squad/Unpack:1"});
}

TEST_CASE("a SavedModel of an encoder without a pooler has no output of it") {
  const auto outputs =
      saved(Architecture::encoder, small_config(), PoolerLayer::absent).signatures.at("serving_default").outputs;
  CHECK(outputs.size() == 1);
  CHECK(outputs.contains("last_hidden_state"));
}

TEST_CASE("a SavedModel has probabilities of classes and of several labels and none of a regression") {
  bert::Config config = small_config();
  using enum Architecture;
  CHECK(saved(sequence_classification, config).find("probabilities")->inputs == std::vector<std::string>{"Softmax"});
  config.problem_type = "multi_label_classification";
  CHECK(saved(sequence_classification, config).find("probabilities")->inputs == std::vector<std::string>{"Sigmoid"});
  config.problem_type = "regression";
  CHECK(saved(sequence_classification, config).find("probabilities") == nullptr);
  config.problem_type = "";
  config.labels = {"score"};
  CHECK(saved(sequence_classification, config).find("probabilities")->inputs == std::vector<std::string>{"Sigmoid"});
}

TEST_CASE("every layer of a SavedModel is made of the same nodes") {
  const DecodedSavedModel model = saved(Architecture::encoder);
  const std::map<std::string, std::ptrdiff_t> kinds = {
      {"VarHandleOp", 16}, {"ReadVariableOp", 16},   {"MatMul", 6},  {"BiasAdd", 6}, {"BatchMatMulV2", 2},
      {"Softmax", 1},      {"Transpose", 4},         {"Reshape", 4}, {"Pack", 3},    {"Mean", 4},
      {"Rsqrt", 2},        {"SquaredDifference", 2}, {"Sub", 2},     {"Erf", 1},     {"AddV2", 8},
      {"Mul", 8}};
  std::ptrdiff_t all = 0;
  for (const auto& [op, count] : kinds) all += count;
  for (const std::string layer : {"bert/encoder/layer_0/", "bert/encoder/layer_1/"}) {
    for (const auto& [op, count] : kinds) {
      CAPTURE(op);
      CHECK(model.count(op, layer) == count);
    }
    CHECK(std::ranges::count_if(model.nodes, [&](const auto& n) { return n.name.starts_with(layer); }) == all);
  }
  CHECK(model.count("GatherV2", "bert/embeddings/") == 3);
  CHECK(model.count("ParseExampleV2") == 1);
  CHECK(model.count("PlaceholderWithDefault") == 3);
}

TEST_CASE("a SavedModel has each activation that a configuration may name") {
  bert::Config config = small_config();
  const std::string place = "bert/encoder/layer_1/intermediate/dense/";
  const std::map<Activation, const char*> ops = {
      {Activation::gelu, "Erf"}, {Activation::gelu_tanh, "Tanh"}, {Activation::relu, "Relu"}};
  for (const auto& [activation, op] : ops) {
    config.hidden_act = activation;
    const DecodedSavedModel model = saved(Architecture::masked_lm, config);
    for (const auto& [other, its_op] : ops) CHECK(model.count(its_op, place) == (other == activation ? 1 : 0));
    CHECK(model.count(op, "cls/predictions/transform/") == 1);
  }
  config.hidden_act = Activation::exp;
  CHECK(support::refusal(Failure::bug, [&] { saved(Architecture::encoder, config); }) ==
        "saved model: hidden_act: expected gelu, gelu_tanh or relu, got number 5");
}

TEST_CASE("the variables of a SavedModel are the weights and are restored and saved under their names") {
  for (const Architecture architecture : kAll) {
    const auto weights = google_weights(architecture, PoolerLayer::present);
    const DecodedSavedModel model = saved(architecture);
    std::vector<std::string> names;
    for (const auto& [name, dims] : weights) {
      names.push_back(name);
      REQUIRE(model.find(name));
      CHECK(model.find(name)->op == "VarHandleOp");
      CHECK(model.find(name)->attributes.at("shape") == exporting::tf::attribute::shape(dims));
    }
    CHECK(model.count("VarHandleOp") == std::ssize(names));
    REQUIRE(model.collections.size() == 2);
    CHECK(model.collections.at("trainable_variables") == model.collections.at("variables"));
    REQUIRE(model.collections.at("variables").size() == names.size());
    const DecodedNode &restore = *model.find("save/RestoreV2"), &save = *model.find("save/SaveV2");
    CHECK(model.find(restore.inputs.at(1))->texts == names);
    CHECK(model.find(restore.inputs.at(2))->texts == std::vector<std::string>(names.size()));
    CHECK(std::vector(save.inputs.begin(), save.inputs.begin() + 3) == restore.inputs);
    REQUIRE(save.inputs.size() == names.size() + 3);
    const DecodedNode& all = *model.find("save/restore_all");
    REQUIRE(all.inputs.size() == names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      CHECK(model.find(node_of(all.inputs[i]))->inputs ==
            std::vector<std::string>{names[i], "save/RestoreV2:" + std::to_string(i)});
      CHECK(model.find(save.inputs[i + 3])->inputs == std::vector<std::string>{names[i]});
      CHECK(model.collections.at("variables")[i] ==
            std::vector<std::string>{names[i] + ":0", "save/Assign_" + std::to_string(i), names[i] + "/Read:0", "true",
                                     "save/RestoreV2:" + std::to_string(i), "true"});  // a resource, trainable
    }
    CHECK(model.saver == std::vector<std::string>{"save/filename:0", "save/done:0", "save/restore_all"});
    REQUIRE(model.find("save/done"));
    CHECK(model.find("save/done")->inputs == std::vector<std::string>{"save/filename", "^save/SaveV2"});
  }
}

TEST_CASE("a SavedModel says what loaders look for first") {
  const DecodedSavedModel model = saved(Architecture::encoder);
  CHECK(model.schema == 1);
  CHECK(model.tags == std::vector<std::string>{"serve"});
  CHECK(model.tensorflow == "1.15.0");
  CHECK(model.producer == 134);
  CHECK(model.saver_version == 2);
}

TEST_CASE("weights that no node reads and weights that are missing are mistakes of the program") {
  const bert::Config config = small_config();
  auto weights = google_weights(Architecture::encoder, PoolerLayer::present);
  const auto refused = [&] {
    return support::refusal(Failure::bug, [&] {
      exporting::saved_model_of({.config = config,
                                 .architecture = Architecture::encoder,
                                 .pooler_layer = PoolerLayer::present,
                                 .source = "",
                                 .weights = weights});
    });
  };
  weights["output_bias"] = {3};
  CHECK(refused() == "graph: variable output_bias: expected a node that reads it, got none");
  weights.erase("output_bias");
  weights.erase("bert/pooler/dense/bias");
  CHECK(refused() == "graph: variable bert/pooler/dense/bias: expected one of the model's, got none of that name");
}

TEST_CASE("the nodes of a SavedModel have the axes, places and numbers of their formulas") {
  namespace attribute = exporting::tf::attribute;
  using Ints = std::vector<std::int32_t>;
  const DecodedSavedModel model = saved(Architecture::sequence_classification);
  const auto node = [&](const std::string& name) {
    CAPTURE(name);
    REQUIRE(model.find(name));
    return *model.find(name);
  };
  const auto input = [&](const std::string& name, std::size_t i) {
    return node(node(name).inputs.at(i)).attributes.at("value");
  };
  const std::string length = "bert" + std::string("/StridedSlice");  // of [batch, length]
  for (const char* name : {"bert/embeddings/GatherV2", "bert/embeddings/GatherV2_1", "bert/embeddings/GatherV2_2"})
    CHECK(input(name, 2) == constant(0));
  CHECK(input(length, 1) == constant(Ints{1}));
  CHECK(input(length, 2) == constant(Ints{2}));
  CHECK(input(length, 3) == constant(Ints{1}));
  CHECK(node(length).attributes.at("shrink_axis_mask") == attribute::number(1));
  CHECK(input("bert/embeddings/Range", 0) == constant(0));
  CHECK(node("bert/embeddings/Range").inputs.at(1) == length);
  CHECK(input("bert/embeddings/Range", 2) == constant(1));
  CHECK(input("bert/pooler/dense/StridedSlice", 1) == constant(Ints{0, 0}));  // the first token of each sequence
  CHECK(input("bert/pooler/dense/StridedSlice", 2) == constant(Ints{0, 1}));
  CHECK(input("bert/pooler/dense/StridedSlice", 3) == constant(Ints{1, 1}));
  CHECK(input("bert/encoder/ExpandDims", 1) == constant(1));
  CHECK(input("bert/encoder/ExpandDims_1", 1) == constant(1));
  CHECK(input("bert/encoder/Sub", 0) == constant(1.0F));
  CHECK(input("bert/encoder/Mul", 1) == constant(-10000.0F));
  CHECK(node("bert/embeddings/LayerNorm/Mean").attributes.at("keep_dims") == attribute::flag(true));
  const std::string self = "bert/encoder/layer_0/attention/self/";
  for (const char* part : {"query/", "key/", "value/", ""})
    CHECK(input(self + part + "Transpose", 1) == constant(Ints{0, 2, 1, 3}));
  CHECK(node(self + "BatchMatMulV2").attributes.at("adj_y") == attribute::flag(true));
  CHECK(node("MatMul").attributes.at("transpose_b") == attribute::flag(true));
  CHECK(node("parsed/ParseExampleV2").attributes.at("num_sparse") == attribute::number(0));
}
