// config.json read and written.
#include "bert/directory/config_file.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "io/input_files.h"
#include "io/json.h"
#include "io/nearest_name.h"

namespace bertrand::bert {
namespace {

using io::Json;

constexpr std::size_t kMostArchitectures = 100;  // a model has one; they are kept beside the value of the file

/// As transformers names them; of two names the first is written.
constexpr std::pair<const char*, Activation> kActivations[] = {{"gelu", Activation::gelu},
                                                               {"gelu_new", Activation::gelu_tanh},
                                                               {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                               {"relu", Activation::relu}};

Activation activation_of(const std::string& file, const std::string& name) {
  for (const auto& [known, activation] : kActivations)
    if (known == name) return activation;
  fail(Failure::model, "{}: hidden_act: expected gelu, gelu_new, gelu_pytorch_tanh or relu, got {}", file,
       io::shown(name));
}
const char* name_of_activation(Activation activation) {
  for (const auto& [name, known] : kActivations)
    if (known == activation) return name;
  fail(Failure::bug, "config: the activation number {} has no name in transformers", static_cast<int>(activation));
}

/// The number that is written as `key` without leading zeros, if it is below `count`.
std::optional<std::size_t> number_below(std::size_t count, const std::string& key) {
  std::size_t number = 0;
  std::from_chars(key.data(), key.data() + key.size(), number);
  return number < count && std::to_string(number) == key ? std::optional(number) : std::nullopt;
}

/// A name of a class; a whole number, which transformers takes too, is its text.
std::string name_of_label(const io::JsonReader& reader, const std::string& key, const Json& name) {
  if (name.is_string()) return name.get<std::string>();
  if (name.is_number_integer()) return io::json_text(name);
  fail(Failure::model, "{}: id2label: expected a text as the name of {}, got {}; hint: put a name there, in quotes",
       reader.source(), io::shown(key), io::shown(name));
}

/// id2label maps "0", "1", … to different names; every number must be there.
std::vector<std::string> read_labels(io::JsonReader& reader) {
  const Json* map = reader.find("id2label");
  reader.pass_over("label2id");  // made of id2label when it is written
  if (!map || map->is_null()) return {};
  if (!map->is_object()) reader.refuse("id2label", "an object", map);
  std::vector<std::optional<std::string>> names(map->size());
  for (const auto& [key, name] : map->items())
    if (const auto number = number_below(names.size(), key)) names[*number] = name_of_label(reader, key, name);
  std::vector<std::string> labels;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i])
      fail(Failure::model, "{}: id2label: expected a name for each of \"0\" to \"{}\", got none for \"{}\"",
           reader.source(), names.size() - 1, i);
    labels.push_back(*names[i]);
    if (!seen.insert(labels.back()).second)
      fail(Failure::model, "{}: id2label: expected different names, got {} twice", reader.source(),
           io::shown(labels.back()));
  }
  return labels;
}

/// Older files give only the number of labels.
std::vector<std::string> read_numbered_labels(io::JsonReader& reader) {
  std::int64_t count = 0;
  if (const Json* number = reader.find("num_labels"); number && !number->is_null())
    count = reader.whole("num_labels", {0, kMostLabels});
  return numbered_labels(count);
}

/// Refuses models that are computed in another way than bert::Bert.
void check_kind(const Json& json, const std::string& file) {
  io::JsonReader kind(json, {file});
  kind.expect("model_type", "bert");
  kind.expect("position_embedding_type", "absolute");
  kind.expect("is_decoder", false);
  kind.expect("add_cross_attention", false);
}

/// Keys that other programs write into a configuration and a user may carry over without harm.
bool is_known_elsewhere(const std::string& key) {
  static constexpr const char* kKnown[] = {"pad_token_id",
                                           "position_embedding_type",
                                           "use_cache",
                                           "transformers_version",
                                           "torch_dtype",
                                           "dtype",
                                           "gradient_checkpointing",
                                           "directionality",
                                           "tie_word_embeddings",
                                           "is_decoder",
                                           "add_cross_attention",
                                           "bos_token_id",
                                           "eos_token_id"};
  return key.starts_with("pooler_") || key.starts_with("_") || std::ranges::find(kKnown, key) != std::end(kKnown);
}

/// Keys about the weights that were read, which the weights written need not share: their type, and a decoder apart
/// from the word embeddings.
bool is_of_the_weights(const std::string& key) {
  return key == "dtype" || key == "torch_dtype" || key == "tie_word_embeddings";
}

void refuse_unknown(const io::JsonReader& reader, const std::string& key) {
  const auto nearest = io::nearest_name(key, reader.asked_for());
  fail(Failure::usage, "{}: unknown key {}; {}", reader.source(), io::shown(key),
       nearest ? fmt::format("did you mean \"{}\"?", *nearest) : "hint: keys that begin with _ are left alone");
}

/// The values of `json` for which `reader`, which reads it, was not asked. They are moved out: a list of empty texts is
/// many times as large as its file.
std::string read_others(Json& json, const io::JsonReader& reader, UnknownKeys unknown) {
  Json others = Json::object();
  for (auto&& [key, value] : json.items()) {
    if (std::ranges::find(reader.asked_for(), key) != reader.asked_for().end()) continue;
    if (unknown == UnknownKeys::refuse && !is_known_elsewhere(key)) refuse_unknown(reader, key);
    io::append(others, key, std::move(value));
  }
  return io::json_text(others);
}

void read_sizes(io::JsonReader& reader, Config& c) {
  c.vocab_size = reader.whole("vocab_size", {1, 1 << 24}, c.vocab_size);
  c.hidden_size = reader.whole("hidden_size", {1, 1 << 16}, c.hidden_size);
  c.num_hidden_layers = reader.whole("num_hidden_layers", {0, 1024}, c.num_hidden_layers);
  c.num_attention_heads = reader.whole("num_attention_heads", {1, 1024}, c.num_attention_heads);
  c.intermediate_size = reader.whole("intermediate_size", {1, 1 << 18}, c.intermediate_size);
  c.max_position_embeddings = reader.whole("max_position_embeddings", {1, 1 << 20}, c.max_position_embeddings);
  const Dim left_out = reader.find("model_type") ? 2 : 16;  // what transformers takes of a file of its own, and Google
  c.type_vocab_size = reader.whole("type_vocab_size", {1, 1 << 16}, left_out);
  if (c.hidden_size % c.num_attention_heads != 0)
    fail(Failure::model, "{}: hidden_size: expected a multiple of num_attention_heads ({}), got {}", reader.source(),
         c.num_attention_heads, c.hidden_size);
}

void read_rates(io::JsonReader& reader, Config& c) {
  c.hidden_dropout_prob = reader.real("hidden_dropout_prob", {0, 0.999}, c.hidden_dropout_prob);
  c.attention_probs_dropout_prob =
      reader.real("attention_probs_dropout_prob", {0, 0.999}, c.attention_probs_dropout_prob);
  c.classifier_dropout = reader.real("classifier_dropout", {0, 0.999}, c.classifier_dropout);
  c.initializer_range = reader.real("initializer_range", {0, 10}, c.initializer_range);
  c.layer_norm_eps = reader.real("layer_norm_eps", {0, 1}, c.layer_norm_eps);
}

}  // namespace

Config read_config_file(const std::filesystem::path& file, UnknownKeys unknown) {
  if (!std::filesystem::is_regular_file(file))
    fail(Failure::model, "{}: expected a model configuration, got {}", file.string(),
         std::filesystem::is_directory(file) ? "a directory; hint: name the file config.json in it" : "no file");
  return parse_config(io::read_small_file(file, "configuration"), file.string(), unknown);
}

Config parse_config(std::string_view text, const std::string& file, UnknownKeys unknown) {
  Json json = io::parse_json(text, {file});
  Config c;
  io::JsonReader reader(json, {file});
  check_kind(json, file);
  reader.pass_over("model_type");  // written as "bert", whatever stands here
  read_sizes(reader, c);
  read_rates(reader, c);
  c.hidden_act = activation_of(file, reader.text("hidden_act", name_of_activation(c.hidden_act)));
  c.problem_type = reader.text("problem_type", "");
  c.labels = read_labels(reader);
  if (std::vector<std::string> numbered = read_numbered_labels(reader); c.labels.empty())
    c.labels = std::move(numbered);
  if (const Json* names = reader.find("architectures"); names && !names->is_null()) {
    if (!names->is_array() || !std::ranges::all_of(*names, [](const Json& name) { return name.is_string(); }))
      reader.refuse("architectures", "a list of names", names);
    if (names->size() > kMostArchitectures)
      reader.refuse("architectures", fmt::format("at most {} names", kMostArchitectures), names);
    for (const Json& name : *names) c.architectures.push_back(name.get<std::string>());
  }
  c.others = read_others(json, reader, unknown);
  return c;
}

std::vector<std::string> numbered_labels(std::int64_t count) {
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

Config without_origin(Config config) {
  io::Json others = io::parse_json(config.others, {"the other keys of config.json"});
  for (const char* key : {"_name_or_path", "transformers_version", "tokenizer_class"}) others.erase(key);
  config.others = io::json_text(others);
  return config;
}

std::string config_text(const Config& config) {
  Json json{{"architectures", config.architectures},
            {"model_type", "bert"},
            {"vocab_size", config.vocab_size},
            {"hidden_size", config.hidden_size},
            {"num_hidden_layers", config.num_hidden_layers},
            {"num_attention_heads", config.num_attention_heads},
            {"intermediate_size", config.intermediate_size},
            {"hidden_act", name_of_activation(config.hidden_act)},
            {"hidden_dropout_prob", config.hidden_dropout_prob},
            {"attention_probs_dropout_prob", config.attention_probs_dropout_prob},
            {"classifier_dropout", config.classifier_dropout < 0 ? Json(nullptr) : Json(config.classifier_dropout)},
            {"max_position_embeddings", config.max_position_embeddings},
            {"type_vocab_size", config.type_vocab_size},
            {"initializer_range", config.initializer_range},
            {"layer_norm_eps", config.layer_norm_eps},
            {"pad_token_id", 0}};
  if (!config.labels.empty()) {
    Json names = Json::object(), numbers = Json::object();
    for (std::size_t i = 0; i < config.labels.size(); ++i) {
      io::append(names, std::to_string(i), config.labels[i]);
      io::append(numbers, config.labels[i], i);
    }
    json["id2label"] = std::move(names);
    json["label2id"] = std::move(numbers);
  }
  if (!config.problem_type.empty()) json["problem_type"] = config.problem_type;
  Json others = io::parse_json(config.others, {"the other keys of config.json"});
  for (auto&& [key, value] : others.items()) {
    if (key == "pad_token_id") json[key] = std::move(value);
    else if (!is_of_the_weights(key)) io::append(json, key, std::move(value));
  }
  return io::json_text(json, 2) + "\n";
}

}  // namespace bertrand::bert
