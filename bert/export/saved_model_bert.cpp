// The graph, in the order of bert/network/bert.cpp. Between embeddings and heads a row is a token: [batch · length,
// hidden].
#include "bert/export/saved_model_bert.h"

#include <cmath>
#include <numbers>

#include "bert/export/saved_model.h"
#include "bert/inference/open.h"
#include "io/error.h"

namespace bertrand::exporting {
namespace {

using tf::Dims;
using tf::Output;
using tf::Scope;
using tf::Type;
namespace attribute = tf::attribute;

Output add(const Scope& in, const Output& a, const Output& b) { return in.f32("AddV2", {a, b}); }
Output multiply(const Scope& in, const Output& a, const Output& b) { return in.f32("Mul", {a, b}); }
Output multiply(const Scope& in, const Output& a, double b) {
  return multiply(in, a, in.constant(static_cast<float>(b)));
}
Output add(const Scope& in, const Output& a, double b) { return add(in, a, in.constant(static_cast<float>(b))); }

Output transpose(const Scope& in, const Output& x, const std::vector<std::int32_t>& axes) {
  return in.f32("Transpose", {x, in.constant(axes)});
}
Output mean_of_rows(const Scope& in, const Output& x) {
  return in.f32("Mean", {x, in.constant(std::vector<std::int32_t>{-1})}, {{"keep_dims", attribute::flag(true)}});
}
Output lookup(const Scope& in, const Output& table, const Output& ids) {
  return in.op("GatherV2", {table, ids, in.constant(0)},
               {{"Tparams", attribute::type(Type::f32)},
                {"Tindices", attribute::type(Type::i32)},
                {"Taxis", attribute::type(Type::i32)}});
}

/// x · kernel [in, out] + bias
Output dense(const Scope& in, const Output& x) {
  return in.f32("BiasAdd", {in.f32("MatMul", {x, in.variable("kernel")}), in.variable("bias")});
}
/// x · weightsᵀ [out, in] + output_bias: Google's form of a layer whose outputs are logits.
Output logits_of(const Scope& in, const Output& x, const Output& weights) {
  const Output product = in.f32("MatMul", {x, weights}, {{"transpose_b", attribute::flag(true)}});
  return in.f32("BiasAdd", {product, in.variable("output_bias")});
}
Output classifier(const Scope& in, const Output& x) { return logits_of(in, x, in.variable("output_weights")); }

Output layer_norm(const Scope& in, const Output& x, double epsilon) {
  const Output mean = mean_of_rows(in, x), variance = mean_of_rows(in, in.f32("SquaredDifference", {x, mean}));
  const Output scale = in.f32("Rsqrt", {add(in, variance, epsilon)});
  const Output normal = multiply(in, in.f32("Sub", {x, mean}), scale);
  return add(in, multiply(in, normal, in.variable("gamma")), in.variable("beta"));
}

/// The formulas are those of Unary in tensor/kernels.h.
Output activate(const Scope& in, Activation activation, const Output& x) {
  if (activation == Activation::relu) return in.f32("Relu", {x});
  const Output half = multiply(in, x, 0.5);
  if (activation == Activation::gelu)
    return multiply(in, half, add(in, in.f32("Erf", {multiply(in, x, 1 / std::numbers::sqrt2)}), 1.0));
  check(activation == Activation::gelu_tanh, "saved model: hidden_act: expected gelu, gelu_tanh or relu, got number {}",
        static_cast<int>(activation));
  const Output cube = multiply(in, multiply(in, multiply(in, x, x), x), 0.044715);
  const Output inner = multiply(in, add(in, x, cube), std::sqrt(2 / std::numbers::pi));
  return multiply(in, half, add(in, in.f32("Tanh", {inner}), 1.0));
}

/// What a client gives: i32 [batch, length] each.
struct Inputs {
  Output ids, mask, types;
};

class Bert {
 public:
  Bert(const Scope& scope, const bert::Config& config, const Inputs& inputs)
      : scope_(scope), config_(config), inputs_(inputs) {
    const Output shape = scope.op_on(Type::i32, "Shape", {inputs.ids});
    length_ = scope.op_on(Type::i32, "StridedSlice", {shape, one(1), one(2), one(1)},
                          {{"Index", attribute::type(Type::i32)}, {"shrink_axis_mask", attribute::number(1)}});
  }

  /// [batch · length, hidden]
  Output operator()() const {
    Output x = embeddings(scope_ / "embeddings");
    const Output low = far_below_padding(scope_ / "encoder");
    for (Dim i = 0; i < config_.num_hidden_layers; ++i)
      x = layer(scope_ / "encoder" / fmt::format("layer_{}", i), x, low);
    return x;
  }

  /// [batch, hidden]: of the first token of each sequence.
  Output pooled(const Output& x) const {
    const Scope in = scope_ / "pooler/dense";
    const Output first = in.f32("StridedSlice",
                                {by_sequence(in, x, config_.hidden_size), in.constant(pair(0, 0)),
                                 in.constant(pair(0, 1)), in.constant(pair(1, 1))},
                                {{"Index", attribute::type(Type::i32)},
                                 {"begin_mask", attribute::number(0b01)},
                                 {"end_mask", attribute::number(0b01)},
                                 {"shrink_axis_mask", attribute::number(0b10)}});
    return in.f32("Tanh", {dense(in, first)});
  }

  /// [batch · length, width] → [batch, length, width]
  Output by_sequence(const Scope& in, const Output& x, Dim width) const { return reshape(in, x, {width}); }

  /// [batch · length, vocabulary]: for each token those that may stand there.
  Output predictions(const Scope& in, const Output& x) const {
    const Scope transform = in / "transform";
    const Output hidden = activate(transform, config_.hidden_act, dense(transform / "dense", x));
    return logits_of(in, layer_norm(transform / "LayerNorm", hidden, config_.layer_norm_eps),
                     (scope_ / "embeddings").variable("word_embeddings"));
  }

 private:
  static std::vector<std::int32_t> pair(std::int32_t a, std::int32_t b) { return {a, b}; }
  Output one(std::int32_t value) const { return scope_.constant(std::vector<std::int32_t>{value}); }

  /// To [batch, length, sizes…].
  Output reshape(const Scope& in, const Output& x, const std::vector<Dim>& sizes) const {
    std::vector<Output> dims{in.constant(-1), length_};
    for (const Dim size : sizes) dims.push_back(in.constant(static_cast<std::int32_t>(size)));
    const Output shape = in.op_on(Type::i32, "Pack", dims, {{"N", attribute::number(std::ssize(dims))}});
    return in.f32("Reshape", {x, shape});
  }
  Output rows(const Scope& in, const Output& x) const {
    return in.f32("Reshape", {x, in.constant(pair(-1, static_cast<std::int32_t>(config_.hidden_size)))});
  }
  Output norm(const Scope& in, const Output& x) const {
    return layer_norm(in / "LayerNorm", x, config_.layer_norm_eps);
  }

  Output embeddings(const Scope& in) const {
    const Output positions = in.op("Range", {in.constant(0), length_, in.constant(1)});
    const Output words = lookup(in, in.variable("word_embeddings"), inputs_.ids);
    const Output typed = add(in, words, lookup(in, in.variable("token_type_embeddings"), inputs_.types));
    return norm(in, rows(in, add(in, typed, lookup(in, in.variable("position_embeddings"), positions))));
  }

  /// [batch, 1, 1, length]: what is added to the scores of a key, 0, or of padding -10000, whose softmax is exactly 0.
  Output far_below_padding(const Scope& in) const {
    const Output keys = in.op_on(Type::i32, "ExpandDims", {inputs_.mask, in.constant(1)});
    const Output kept = in.op("Cast", {in.op_on(Type::i32, "ExpandDims", {keys, in.constant(1)})},
                              {{"SrcT", attribute::type(Type::i32)}, {"DstT", attribute::type(Type::f32)}});
    return multiply(in, in.f32("Sub", {in.constant(1.0F), kept}), -10000.0);
  }

  /// Queries, keys or values: [batch, heads, length, width of a head].
  Output heads(const Scope& in, const Output& x) const {
    const Dim width = config_.hidden_size / config_.num_attention_heads;
    return transpose(in, reshape(in, dense(in, x), {config_.num_attention_heads, width}), {0, 2, 1, 3});
  }

  Output self_attention(const Scope& in, const Output& x, const Output& low) const {
    const Dim width = config_.hidden_size / config_.num_attention_heads;
    const Output query = heads(in / "query", x), key = heads(in / "key", x), value = heads(in / "value", x);
    const Output scores = in.f32("BatchMatMulV2", {query, key}, {{"adj_y", attribute::flag(true)}});
    const Output shares =
        in.f32("Softmax", {add(in, multiply(in, scores, 1 / std::sqrt(static_cast<double>(width))), low)});
    return rows(in, transpose(in, in.f32("BatchMatMulV2", {shares, value}), {0, 2, 1, 3}));
  }

  Output output(const Scope& in, const Output& x, const Output& residual) const {
    return norm(in, add(in, dense(in / "dense", x), residual));
  }

  Output layer(const Scope& in, const Output& x, const Output& low) const {
    const Scope attention = in / "attention", intermediate = in / "intermediate/dense";
    const Output attended = output(attention / "output", self_attention(attention / "self", x, low), x);
    const Output wide = activate(intermediate, config_.hidden_act, dense(intermediate, attended));
    return output(in / "output", wide, attended);
  }

  const Scope scope_;
  const bert::Config& config_;
  const Inputs inputs_;
  Output length_;
};

constexpr const char* kInputs[] = {"input_ids", "input_mask", "segment_ids"};
constexpr const char* kExamples = "examples";

/// The three lists of serialized tf.Examples, each padded by zeros to the longest of the batch: i64 [batch, length].
Output parse_examples(const Scope& in, const Output& examples) {
  const Output none = in.constant(std::vector<std::string>{}), zero = in.constant(std::int64_t{0});
  const Output names = in.constant(std::vector<std::string>(std::begin(kInputs), std::end(kInputs)));
  return in.op("ParseExampleV2", {examples, none, none, names, none, zero, zero, zero},
               {{"Tdense", attribute::types({Type::i64, Type::i64, Type::i64})},
                {"dense_shapes", attribute::shapes({{-1}, {-1}, {-1}})},
                {"num_sparse", attribute::number(0)},
                {"sparse_types", attribute::types({})},
                {"ragged_value_types", attribute::types({})},
                {"ragged_split_types", attribute::types({})}});
}

/// An input is what a client feeds; if it feeds examples instead, it is the list that these have.
Inputs add_inputs(tf::Graph& graph) {
  const Output examples = graph.add(kExamples, "Placeholder", {},
                                    {{"dtype", attribute::type(Type::string)}, {"shape", attribute::shape({-1})}});
  const Scope in(graph, "parsed");
  const Output lists = parse_examples(in, examples);
  std::vector<Output> inputs;
  for (const char* name : kInputs) {
    const Output list = in.op("Cast", {fmt::format("{}:{}", lists, inputs.size())},
                              {{"SrcT", attribute::type(Type::i64)}, {"DstT", attribute::type(Type::i32)}});
    inputs.push_back(graph.add(name, "PlaceholderWithDefault", {list},
                               {{"dtype", attribute::type(Type::i32)}, {"shape", attribute::shape({-1, -1})}}));
  }
  return {.ids = inputs[0], .mask = inputs[1], .types = inputs[2]};
}

/// The outputs of a model by their names.
class Outputs {
 public:
  explicit Outputs(tf::Graph& graph) : graph_(graph) {}
  void add(const std::string& name, const Output& x, const Dims& dims) {
    const Output node = graph_.add(name, "Identity", {x}, {{"T", attribute::type(Type::f32)}});
    all_.push_back({.name = name, .output = node, .type = Type::f32, .dims = dims});
  }
  const std::vector<tf::NamedTensor>& all() const { return all_; }

 private:
  tf::Graph& graph_;
  std::vector<tf::NamedTensor> all_;
};

/// Regression has numbers instead of probabilities.
void add_sequence_outputs(const Scope& root, const SavedModelBert& model, const Output& logits, Outputs& outputs) {
  const std::vector<std::string>& labels = model.config.labels;
  const Dims dims{-1, std::ssize(labels)};
  outputs.add("logits", logits, dims);
  const tasks::Kind kind = inference::kind_of_classifier(model.config, labels.size(), model.source);
  if (kind == tasks::Kind::regression) return;
  const bool has_any = kind == tasks::Kind::multi_label;
  outputs.add("probabilities", root.f32(has_any ? "Sigmoid" : "Softmax", {logits}), dims);
}

/// The head on top of the rows of all tokens.
void add_head(const Scope& root, const SavedModelBert& model, const Bert& bert, Outputs& outputs) {
  using enum bert::Architecture;
  const Output x = bert();
  const auto by_token = [&](const Output& rows, Dim width) { return bert.by_sequence(root, rows, width); };
  const Dim labels = std::ssize(model.config.labels), vocabulary = model.config.vocab_size;
  const Scope cls = root / "cls";
  switch (model.architecture) {
    case sequence_classification: return add_sequence_outputs(root, model, classifier(root, bert.pooled(x)), outputs);
    case multiple_choice: return outputs.add("logits", classifier(root, bert.pooled(x)), {-1, 1});  // of each choice
    case token_classification: {
      const Output logits = by_token(classifier(root, x), labels);
      outputs.add("logits", logits, {-1, -1, labels});
      outputs.add("probabilities", root.f32("Softmax", {logits}), {-1, -1, labels});
      return;
    }
    case question_answering: {
      const Output both = (cls / "squad")
                              .f32("Unpack", {by_token(classifier(cls / "squad", x), 2)},
                                   {{"num", attribute::number(2)}, {"axis", attribute::number(-1)}});
      outputs.add("start_logits", both, {-1, -1});
      outputs.add("end_logits", both + ":1", {-1, -1});
      return;
    }
    case masked_lm:
      outputs.add("logits", by_token(bert.predictions(cls / "predictions", x), vocabulary), {-1, -1, vocabulary});
      return;
    case pretraining:
      outputs.add("prediction_logits", by_token(bert.predictions(cls / "predictions", x), vocabulary),
                  {-1, -1, vocabulary});
      outputs.add("seq_relationship_logits", classifier(cls / "seq_relationship", bert.pooled(x)), {-1, 2});
      return;
    case encoder:
      outputs.add("last_hidden_state", by_token(x, model.config.hidden_size), {-1, -1, model.config.hidden_size});
      if (model.pooler_layer == bert::PoolerLayer::present)
        outputs.add("pooler_output", bert.pooled(x), {-1, model.config.hidden_size});
      return;
  }
  fail(Failure::bug, "saved model: expected an architecture that is known, got number {}",
       static_cast<int>(model.architecture));
}

}  // namespace

std::string saved_model_of(const SavedModelBert& model) {
  tf::Graph graph(model.weights);
  const Scope root(graph);
  const Inputs inputs = add_inputs(graph);
  Outputs outputs(graph);
  add_head(root, model, Bert(root / "bert", model.config, inputs), outputs);
  std::vector<tf::NamedTensor> fed;
  for (const char* name : kInputs) fed.push_back({.name = name, .output = name, .type = Type::i32, .dims = {-1, -1}});
  return tf::saved_model(std::move(graph),
                         {{.name = kExamples,
                           .inputs = {{.name = kExamples, .output = kExamples, .type = Type::string, .dims = {-1}}},
                           .outputs = outputs.all()},
                          {.name = "serving_default", .inputs = fed, .outputs = outputs.all()}});
}

}  // namespace bertrand::exporting
