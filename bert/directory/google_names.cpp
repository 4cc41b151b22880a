// One table of names, read in both directions, and what leads to it from the keys of object-based checkpoints.
#include "bert/directory/google_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace bertrand::bert {
namespace {

/// # stands for the number of a layer. `object` is the key of the model garden without what comes before the layer; |
/// stands between the two that there are.
struct Row {
  std::string_view ours, google, object;
  bool transposed = false;
};

constexpr Row kEncoder[] = {
    {"bert.embeddings.word_embeddings.weight", "bert/embeddings/word_embeddings",
     "layer_with_weights-0/embeddings|_embedding_layer/embeddings"},
    {"bert.embeddings.position_embeddings.weight", "bert/embeddings/position_embeddings",
     "layer_with_weights-1/embeddings|_position_embedding_layer/embeddings"},
    {"bert.embeddings.token_type_embeddings.weight", "bert/embeddings/token_type_embeddings",
     "layer_with_weights-2/embeddings|_type_embedding_layer/embeddings"},
    {"bert.embeddings.LayerNorm.weight", "bert/embeddings/LayerNorm/gamma",
     "layer_with_weights-3/gamma|_embedding_norm_layer/gamma"},
    {"bert.embeddings.LayerNorm.bias", "bert/embeddings/LayerNorm/beta",
     "layer_with_weights-3/beta|_embedding_norm_layer/beta"},
    {"bert.pooler.dense.weight", "bert/pooler/dense/kernel", "next_sentence..pooler_dense/kernel|_pooler_layer/kernel",
     true},
    {"bert.pooler.dense.bias", "bert/pooler/dense/bias", "next_sentence..pooler_dense/bias|_pooler_layer/bias"}};

constexpr Row kLayer[] = {
    {"attention.self.query.weight", "attention/self/query/kernel", "_attention_layer/_query_dense/kernel", true},
    {"attention.self.query.bias", "attention/self/query/bias", "_attention_layer/_query_dense/bias"},
    {"attention.self.key.weight", "attention/self/key/kernel", "_attention_layer/_key_dense/kernel", true},
    {"attention.self.key.bias", "attention/self/key/bias", "_attention_layer/_key_dense/bias"},
    {"attention.self.value.weight", "attention/self/value/kernel", "_attention_layer/_value_dense/kernel", true},
    {"attention.self.value.bias", "attention/self/value/bias", "_attention_layer/_value_dense/bias"},
    {"attention.output.dense.weight", "attention/output/dense/kernel",
     "_attention_layer/_output_dense/kernel|_attention_output_dense/kernel", true},
    {"attention.output.dense.bias", "attention/output/dense/bias",
     "_attention_layer/_output_dense/bias|_attention_output_dense/bias"},
    {"attention.output.LayerNorm.weight", "attention/output/LayerNorm/gamma", "_attention_layer_norm/gamma"},
    {"attention.output.LayerNorm.bias", "attention/output/LayerNorm/beta", "_attention_layer_norm/beta"},
    {"intermediate.dense.weight", "intermediate/dense/kernel", "_intermediate_dense/kernel", true},
    {"intermediate.dense.bias", "intermediate/dense/bias", "_intermediate_dense/bias"},
    {"output.dense.weight", "output/dense/kernel", "_output_dense/kernel", true},
    {"output.dense.bias", "output/dense/bias", "_output_dense/bias"},
    {"output.LayerNorm.weight", "output/LayerNorm/gamma", "_output_layer_norm/gamma"},
    {"output.LayerNorm.bias", "output/LayerNorm/beta", "_output_layer_norm/beta"}};

constexpr Row kHeads[] = {
    {"cls.predictions.transform.dense.weight", "cls/predictions/transform/dense/kernel", "masked_lm/dense/kernel",
     true},
    {"cls.predictions.transform.dense.bias", "cls/predictions/transform/dense/bias", "masked_lm/dense/bias"},
    {"cls.predictions.transform.LayerNorm.weight", "cls/predictions/transform/LayerNorm/gamma",
     "masked_lm/layer_norm/gamma"},
    {"cls.predictions.transform.LayerNorm.bias", "cls/predictions/transform/LayerNorm/beta",
     "masked_lm/layer_norm/beta"},
    {"cls.predictions.bias", "cls/predictions/output_bias", "masked_lm/output_bias|masked_lm/output_bias..bias"},
    {"cls.predictions.decoder.weight", "", "masked_lm/embedding_table"},
    {"cls.seq_relationship.weight", "cls/seq_relationship/output_weights", ""},
    {"cls.seq_relationship.bias", "cls/seq_relationship/output_bias", ""},
    {"qa_outputs.weight", "cls/squad/output_weights", ""},
    {"qa_outputs.bias", "cls/squad/output_bias", ""},
    {"classifier.weight", "output_weights", ""},
    {"classifier.bias", "output_bias", ""}};

constexpr std::string_view kOurLayer = "bert.encoder.layer.", kGoogleLayer = "bert/encoder/layer_";

/// A name that begins with a number and `separator`: the number, and what comes after it.
struct Numbered {
  int number;
  std::string_view rest;
};
std::optional<Numbered> numbered(std::string_view text, char separator) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != separator || number < 0) return {};
  return Numbered{number, text.substr(static_cast<std::size_t>(end - text.data()) + 1)};
}

std::optional<Numbered> numbered_behind(std::string_view prefix, std::string_view text, char separator) {
  return text.starts_with(prefix) ? numbered(text.substr(prefix.size()), separator) : std::nullopt;
}

GoogleName of_layer(int number, const Row& row) {
  return {fmt::format("{}{}.{}", kOurLayer, number, row.ours), row.transposed};
}

/// Whether `key` is one of those in `objects`.
bool is_one_of(std::string_view objects, std::string_view key) {
  while (!objects.empty()) {
    const std::size_t end = std::min(objects.find('|'), objects.size());
    if (objects.substr(0, end) == key) return true;
    objects.remove_prefix(std::min(end + 1, objects.size()));
  }
  return false;
}

/// The part of a key that begins with the last component of which this is the beginning.
std::optional<std::string_view> from_last(std::string_view key, std::string_view component) {
  for (std::size_t at = key.size(); (at = key.rfind(component, at)) != std::string_view::npos && at != 0; --at)
    if (key[at - 1] == '/') return key.substr(at);
  if (key.starts_with(component)) return key;
  return {};
}

std::optional<GoogleName> layer_of_object(int number, std::string_view rest) {
  for (const Row& row : kLayer)
    if (is_one_of(row.object, rest)) return of_layer(number, row);
  return {};
}

/// The encoder's layers are numbered together with its embeddings: 0 to 3, then the layers, then the pooler.
std::optional<GoogleName> name_of_object(std::string_view key) {
  for (const Row& row : kHeads)
    if (is_one_of(row.object, key)) return GoogleName{std::string(row.ours), row.transposed};
  constexpr std::string_view kTransformer = "_transformer_layers/", kWeights = "layer_with_weights-";
  if (const auto layer = from_last(key, kTransformer)) {
    const auto found = numbered(layer->substr(kTransformer.size()), '/');
    return found ? layer_of_object(found->number, found->rest) : std::nullopt;
  }
  const std::string_view path = from_last(key, kWeights).value_or(key);
  if (const auto found = numbered_behind(kWeights, path, '/'); found && found->number > 3) {
    if (found->rest == "kernel") return GoogleName{"bert.pooler.dense.weight", true};
    if (found->rest == "bias") return GoogleName{"bert.pooler.dense.bias"};
    return layer_of_object(found->number - 4, found->rest);
  }
  const std::string_view plain = path.starts_with("encoder/") ? path.substr(8) : path;
  for (const Row& row : kEncoder)
    if (is_one_of(row.object, plain)) return GoogleName{std::string(row.ours), row.transposed};
  return {};
}

constexpr std::string_view kVariable = "/.ATTRIBUTES/VARIABLE_VALUE";

}  // namespace

std::optional<GoogleName> google_name(std::string_view ours) {
  if (const auto layer = numbered_behind(kOurLayer, ours, '.'))
    for (const Row& row : kLayer)
      if (row.ours == layer->rest)
        return GoogleName{fmt::format("{}{}/{}", kGoogleLayer, layer->number, row.google), row.transposed};
  for (const std::span<const Row> rows : {std::span<const Row>(kEncoder), std::span<const Row>(kHeads)})
    for (const Row& row : rows)
      if (row.ours == ours && !row.google.empty()) return GoogleName{std::string(row.google), row.transposed};
  return {};
}

std::optional<GoogleName> our_name(std::string_view stored) {
  if (stored.ends_with(kVariable)) return name_of_object(stored.substr(0, stored.size() - kVariable.size()));
  if (const auto layer = numbered_behind(kGoogleLayer, stored, '/'))
    for (const Row& row : kLayer)
      if (row.google == layer->rest) return of_layer(layer->number, row);
  for (const std::span<const Row> rows : {std::span<const Row>(kEncoder), std::span<const Row>(kHeads)})
    for (const Row& row : rows)
      if (row.google == stored && !stored.empty()) return GoogleName{std::string(row.ours), row.transposed};
  return {};
}

std::vector<std::int64_t> joined_heads(std::string_view ours, const std::vector<std::int64_t>& dims) {
  if (ours.find(".attention.") == std::string_view::npos || ours.find("LayerNorm") != std::string_view::npos)
    return dims;
  if (ours.ends_with(".bias")) return dims.size() == 2 ? std::vector{dims[0] * dims[1]} : dims;
  if (dims.size() != 3) return dims;
  if (ours.find(".self.") != std::string_view::npos) return {dims[0], dims[1] * dims[2]};
  return {dims[0] * dims[1], dims[2]};
}

bool is_bookkeeping(std::string_view stored) {
  return stored == "_CHECKPOINTABLE_OBJECT_GRAPH" || stored == "save_counter/.ATTRIBUTES/VARIABLE_VALUE";
}

}  // namespace bertrand::bert
