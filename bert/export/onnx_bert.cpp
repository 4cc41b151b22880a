// BERT in the operators of ONNX, in the order of bert/network/bert.cpp and heads.cpp: read both side by side. There a
// batch is packed; here it is [batch, length] with padding, which a mask takes out of attention.
#include "bert/export/onnx_bert.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "io/error.h"
#include "io/json.h"
#include "io/version.h"
#include "nn/tensor_file.h"

namespace bertrand::exporting {
namespace {

using bert::Architecture;
using onnx::Axis;
using onnx::Type;
using onnx::Value;

const std::vector<Axis> kBatch{"batch_size", "sequence_length"};
const std::vector<Axis> kChoices{"batch_size", "num_choices", "sequence_length"};

/// `at` is everywhere the name of the module whose part is described, as in the model directory.
class Builder {
 public:
  explicit Builder(const OnnxBert& bert) : bert_(bert), config_(bert.config) {}
  onnx::Graph build() &&;

 private:
  // Layers.
  nn::NamedTensor tensor(const std::string& name) const;
  Value weight(const std::string& name) { return graph_.weight(nn::tensor_source(tensor(name))); }
  /// [out, in] stored as [in, out].
  Value dense_weight(const std::string& name) { return graph_.weight(nn::transposed_source(tensor(name))); }
  Value add(const Value& a, const Value& b) { return graph_.node("Add", {a, b}); }
  Value mul(const Value& a, const Value& b) { return graph_.node("Mul", {a, b}); }
  Value gather(const Value& table, const Value& rows, std::int64_t axis = 0) {
    return graph_.node("Gather", {table, rows}, {{"axis", axis}});
  }
  Value dense(const Value& x, const std::string& at);
  Value dense_of_rows(const Value& rows, const std::string& at);
  Value norm(const Value& x, const std::string& at);
  Value activation(const Value& x);
  // The encoder.
  Value positions(const Value& ids);
  Value embeddings(const Value& ids, const Value& types);
  Value mask(const Value& attention_mask);
  Value split_heads(const Value& x, const std::vector<std::int64_t>& order);
  Value self_attention(const Value& x, const Value& mask, const std::string& at);
  Value output(const Value& x, const Value& residual, const std::string& at);
  Value attention(const Value& x, const Value& mask, const std::string& at);
  Value intermediate(const Value& x, const std::string& at);
  Value layer(const Value& x, const Value& mask, const std::string& at);
  Value encoder(Value x, const Value& mask);
  Value pooler(const Value& x);
  Value flat(const Value& x);
  // Heads.
  Value predictions(const Value& x);
  void answers(const Value& x);
  void no_head(const Value& x);
  void head(const Value& x, const Value& ids);

  const OnnxBert& bert_;
  const bert::Config& config_;
  onnx::Graph graph_;
};

nn::NamedTensor Builder::tensor(const std::string& name) const {
  const nn::ParameterSet::Segment* segment = bert_.parameters.find(name);
  check(segment != nullptr, "onnx: the model has no weight \"{}\"", name);
  return {name, bert_.parameters.master(*segment)};
}

/// x · weight + bias, for every row of x [batch, length, in].
Value Builder::dense(const Value& x, const std::string& at) {
  graph_.enter(at);
  return add(graph_.node("MatMul", {x, dense_weight(at + ".weight")}), weight(at + ".bias"));
}

/// The same for x [batch, in].
Value Builder::dense_of_rows(const Value& rows, const std::string& at) {
  graph_.enter(at);
  return graph_.node("Gemm", {rows, dense_weight(at + ".weight"), weight(at + ".bias")});
}

Value Builder::norm(const Value& x, const std::string& at) {
  graph_.enter(at);
  return graph_.node("LayerNormalization", {x, weight(at + ".weight"), weight(at + ".bias")},
                     {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(config_.layer_norm_eps)}});
}

Value Builder::activation(const Value& x) {
  if (config_.hidden_act == Activation::relu) return graph_.node("Relu", {x});
  const Value half = graph_.number(0.5F), one = graph_.number(1);
  if (config_.hidden_act == Activation::gelu) {  // x · (1 + erf(x / √2)) · ½
    const Value erf = graph_.node("Erf", {graph_.node("Div", {x, graph_.number(std::numbers::sqrt2_v<float>)})});
    return mul(mul(x, add(erf, one)), half);
  }
  if (config_.hidden_act == Activation::gelu_tanh) {  // ½x · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
    const Value cube = graph_.node("Pow", {x, graph_.number(3)});
    const Value inner = add(x, mul(graph_.number(0.044715F), cube));
    const auto scale = static_cast<float>(std::sqrt(2 / std::numbers::pi));
    return mul(mul(half, x), add(one, graph_.node("Tanh", {mul(graph_.number(scale), inner)})));
  }
  fail(Failure::bug, "onnx: the activation number {} has no node", static_cast<int>(config_.hidden_act));
}

/// [1, length]: 0, 1, …, of the table of all positions, which the fusion of embeddings looks for.
Value Builder::positions(const Value& ids) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(config_.max_position_embeddings));
  std::iota(all.begin(), all.end(), 0);
  const Value table = graph_.table("bert.embeddings.position_ids", {1, std::ssize(all)}, all);
  const Value length = gather(graph_.node("Shape", {ids}), graph_.integer(1));
  const Value end = graph_.node("Unsqueeze", {length, graph_.integers({0})});
  return graph_.node("Slice", {table, graph_.integers({0}), end, graph_.integers({1}), graph_.integers({1})});
}

Value Builder::embeddings(const Value& ids, const Value& types) {
  const std::string at = "bert.embeddings";
  graph_.enter(at);
  const Value words = gather(weight(at + ".word_embeddings.weight"), ids);
  const Value kinds = gather(weight(at + ".token_type_embeddings.weight"), types);
  const Value places = gather(weight(at + ".position_embeddings.weight"), positions(ids));
  return norm(add(add(words, kinds), places), at + ".LayerNorm");
}

/// [batch, 1, 1, length]: added to scores, it leaves those of tokens and lowers those of padding out of sight.
Value Builder::mask(const Value& attention_mask) {
  constexpr float kFarBelow = -10000;  // Google's number
  graph_.enter("bert.mask");
  const Value rows = graph_.node("Unsqueeze", {attention_mask, graph_.integers({1})});
  const Value heads = graph_.node("Unsqueeze", {rows, graph_.integers({2})});
  const Value kept = graph_.node("Cast", {heads}, {{"to", static_cast<std::int64_t>(Type::f32)}});
  return mul(graph_.node("Sub", {graph_.number(1), kept}), graph_.number(kFarBelow));
}

/// [batch, length, hidden] → [batch, length, heads, width] → its axes in this order.
Value Builder::split_heads(const Value& x, const std::vector<std::int64_t>& order) {
  const Dim heads = config_.num_attention_heads;
  const Value split = graph_.node("Reshape", {x, graph_.integers({0, 0, heads, config_.hidden_size / heads})});
  return graph_.node("Transpose", {split}, {{"perm", order}});
}

Value Builder::self_attention(const Value& x, const Value& mask, const std::string& at) {
  const Value query = split_heads(dense(x, at + ".query"), {0, 2, 1, 3});
  const Value key = split_heads(dense(x, at + ".key"), {0, 2, 3, 1});  // turned over for the product
  const Value value = split_heads(dense(x, at + ".value"), {0, 2, 1, 3});
  graph_.enter(at);
  const Dim width = config_.hidden_size / config_.num_attention_heads;
  const Value scores =
      graph_.node("Div", {graph_.node("MatMul", {query, key}), graph_.number(std::sqrt(static_cast<float>(width)))});
  const Value shares = graph_.node("Softmax", {add(scores, mask)}, {{"axis", std::int64_t{-1}}});
  const Value context = graph_.node("MatMul", {shares, value});
  const Value turned = graph_.node("Transpose", {context}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  return graph_.node("Reshape", {turned, graph_.integers({0, 0, config_.hidden_size})});
}

Value Builder::output(const Value& x, const Value& residual, const std::string& at) {
  return norm(add(dense(x, at + ".dense"), residual), at + ".LayerNorm");
}

Value Builder::attention(const Value& x, const Value& mask, const std::string& at) {
  return output(self_attention(x, mask, at + ".self"), x, at + ".output");
}

Value Builder::intermediate(const Value& x, const std::string& at) { return activation(dense(x, at + ".dense")); }

Value Builder::layer(const Value& x, const Value& mask, const std::string& at) {
  const Value attended = attention(x, mask, at + ".attention");
  return output(intermediate(attended, at + ".intermediate"), attended, at + ".output");
}

Value Builder::encoder(Value x, const Value& mask) {
  for (Dim i = 0; i < config_.num_hidden_layers; ++i) x = layer(x, mask, fmt::format("bert.encoder.layer.{}", i));
  return x;
}

/// tanh(dense([CLS] rows))
Value Builder::pooler(const Value& x) {
  graph_.enter("bert.pooler");
  const Value first_rows = gather(x, graph_.integer(0), 1);
  return graph_.node("Tanh", {dense_of_rows(first_rows, "bert.pooler.dense")});
}

/// [batch, choices, length] → [batch · choices, length]
Value Builder::flat(const Value& x) {
  graph_.enter("choices");
  const Value length = graph_.node("Slice", {graph_.node("Shape", {x}), graph_.integers({2}), graph_.integers({3})});
  const Value shape = graph_.node("Concat", {graph_.integers({-1}), length}, {{"axis", std::int64_t{0}}});
  return graph_.node("Reshape", {x, shape});
}

/// The decoder is the table of word embeddings itself, which the file holds once.
Value Builder::predictions(const Value& x) {
  const std::string at = "cls.predictions";
  const Value rows = norm(activation(dense(x, at + ".transform.dense")), at + ".transform.LayerNorm");
  graph_.enter(at + ".decoder");
  const Value words = weight("bert.embeddings.word_embeddings.weight");
  const Value decoder = graph_.node("Transpose", {words}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  return add(graph_.node("MatMul", {rows, decoder}), weight(at + ".bias"));
}

void Builder::answers(const Value& x) {
  const Value logits = dense(x, "qa_outputs");
  const Value start = gather(logits, graph_.integer(0), 2), end = gather(logits, graph_.integer(1), 2);
  graph_.output(start, "start_logits", kBatch);
  graph_.output(end, "end_logits", kBatch);
}

void Builder::no_head(const Value& x) {
  const bool has_pooler = bert_.pooler_layer == bert::PoolerLayer::present;
  const Value pooled = has_pooler ? pooler(x) : Value{};
  graph_.output(x, "last_hidden_state", {kBatch[0], kBatch[1], config_.hidden_size});
  if (has_pooler) graph_.output(pooled, "pooler_output", {kBatch[0], config_.hidden_size});
}

/// `ids` as they were given.
void Builder::head(const Value& x, const Value& ids) {
  const nn::ParameterSet::Segment* classes = bert_.parameters.find("classifier.bias");
  const Dim labels = classes ? classes->count() : 0;
  const std::vector<Axis> of_words{kBatch[0], kBatch[1], config_.vocab_size};
  switch (bert_.architecture) {
    case Architecture::sequence_classification:
      return graph_.output(dense_of_rows(pooler(x), "classifier"), "logits", {kBatch[0], labels});
    case Architecture::multiple_choice: {
      const Value scores = dense_of_rows(pooler(x), "classifier");  // [batch · choices, 1]
      graph_.enter("choices");
      const Value shape =
          graph_.node("Slice", {graph_.node("Shape", {ids}), graph_.integers({0}), graph_.integers({2})});
      return graph_.output(graph_.node("Reshape", {scores, shape}), "logits", {kChoices[0], kChoices[1]});
    }
    case Architecture::token_classification:
      return graph_.output(dense(x, "classifier"), "logits", {kBatch[0], kBatch[1], labels});
    case Architecture::question_answering: return answers(x);
    case Architecture::masked_lm: return graph_.output(predictions(x), "logits", of_words);
    case Architecture::pretraining:
      graph_.output(predictions(x), "prediction_logits", of_words);
      return graph_.output(dense_of_rows(pooler(x), "cls.seq_relationship"), "seq_relationship_logits",
                           {kBatch[0], Dim{2}});
    case Architecture::encoder: return no_head(x);
  }
  fail(Failure::bug, "onnx: expected an architecture that is known, got number {}",
       static_cast<int>(bert_.architecture));
}

onnx::Graph Builder::build() && {
  const bool chooses = bert_.architecture == Architecture::multiple_choice;
  const auto input = [&](const char* name) { return graph_.input(name, Type::i64, chooses ? kChoices : kBatch); };
  const Value ids = input("input_ids"), attention_mask = input("attention_mask"), types = input("token_type_ids");
  const auto rows = [&](const Value& x) { return chooses ? flat(x) : x; };
  const Value x = embeddings(rows(ids), rows(types));
  head(encoder(x, mask(rows(attention_mask))), ids);
  return std::move(graph_);
}

/// As the pipelines of transformers call it.
std::string_view task_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::sequence_classification: return "text-classification";
    case Architecture::multiple_choice: return "multiple-choice";
    case Architecture::token_classification: return "token-classification";
    case Architecture::question_answering: return "question-answering";
    case Architecture::masked_lm: return "fill-mask";
    case Architecture::pretraining: return "pretraining";
    case Architecture::encoder: return "feature-extraction";
  }
  fail(Failure::bug, "onnx: expected an architecture that is known, got number {}", static_cast<int>(architecture));
}

}  // namespace

onnx::Graph onnx_graph_of(const OnnxBert& bert) { return Builder(bert).build(); }

void write_onnx(io::Files& files, const std::filesystem::path& directory, const OnnxBert& bert,
                const onnx::FileOptions& options) {
  std::map<std::string, std::string> metadata{
      {"task", std::string(task_of(bert.architecture))},
      {"architecture", std::string(io::name_in(bert::architectures(), bert.architecture))},
      {"bertrand_version", std::string(version())}};
  if (has_labels(bert.architecture)) {
    io::Json labels = io::Json::object();
    for (std::size_t i = 0; i < bert.config.labels.size(); ++i)
      io::append(labels, fmt::format("{}", i), bert.config.labels[i]);
    metadata["id2label"] = io::json_text(labels);
  }
  onnx::write_file(files, directory / "model.onnx", onnx_graph_of(bert), std::move(metadata), options);
}

}  // namespace bertrand::exporting
