#include "bert/network/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/files.h"
#include "io/json_nesting.h"
#include "io/nearest_name.h"

namespace bertrand::bert {
namespace {

using Json = nlohmann::ordered_json;

struct Preset {
  std::string_view name;
  Dim layers, hidden;
};
constexpr Preset kPresets[] = {{"tiny", 2, 128},   {"mini", 4, 256},  {"small", 4, 512},
                               {"medium", 8, 512}, {"base", 12, 768}, {"large", 24, 1024}};

/// A value as it stands in the file, cut where it is long.
std::string shown(const Json& json) {
  constexpr std::size_t kMost = 40;
  std::string text = json.dump(-1, ' ', true);
  if (text.size() > kMost) text = text.substr(0, kMost) + "…";
  return text;
}

/// Reads typed values of one file and says what was wrong with them.
class Reader {
 public:
  Reader(const Json& json, std::string file) : json_(json), file_(std::move(file)) {}

  void whole(const char* key, Dim& value, Dim least, Dim most) {
    const Json* j = find(key);
    if (!j) return;
    if (!j->is_number_integer() || j->get<Dim>() < least || j->get<Dim>() > most)
      fail(Failure::model, "{}: {}: expected an integer in [{}, {}], got {}", file_, key, least, most, shown(*j));
    value = j->get<Dim>();
  }
  void real(const char* key, double& value, double least, double most) {
    const Json* j = find(key);
    if (!j || j->is_null()) return;
    if (!j->is_number() || !(j->get<double>() >= least && j->get<double>() <= most))
      fail(Failure::model, "{}: {}: expected a number in [{}, {}], got {}", file_, key, least, most, shown(*j));
    value = j->get<double>();
  }
  void text(const char* key, std::string& value) {
    const Json* j = find(key);
    if (!j || j->is_null()) return;
    if (!j->is_string()) fail(Failure::model, "{}: {}: expected a string, got {}", file_, key, shown(*j));
    value = j->get<std::string>();
  }
  const Json* find(const char* key) {
    used_.push_back(key);
    const auto it = json_.find(key);
    return it == json_.end() ? nullptr : &*it;
  }
  const std::vector<std::string>& used() const { return used_; }
  const std::string& file() const { return file_; }

 private:
  const Json& json_;
  std::string file_;
  std::vector<std::string> used_;
};

/// As transformers names them; of two names the first is written.
constexpr std::pair<const char*, Activation> kActivations[] = {{"gelu", Activation::gelu},
                                                               {"gelu_new", Activation::gelu_tanh},
                                                               {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                               {"relu", Activation::relu}};

Activation activation_of(const std::string& file, const std::string& name) {
  for (const auto& [known, activation] : kActivations)
    if (known == name) return activation;
  fail(Failure::model, "{}: hidden_act: expected gelu, gelu_new, gelu_pytorch_tanh or relu, got \"{}\"", file, name);
}
const char* name_of_activation(Activation activation) {
  for (const auto& [name, known] : kActivations)
    if (known == activation) return name;
  fail(Failure::bug, "config: the activation number {} has no name in transformers", static_cast<int>(activation));
}

/// id2label maps "0", "1", … to different names; every number must be there.
std::vector<std::string> labels_of(Reader& reader) {
  const Json* map = reader.find("id2label");
  reader.find("label2id");
  if (!map || map->is_null()) return {};
  if (!map->is_object()) fail(Failure::model, "{}: id2label: expected an object, got {}", reader.file(), shown(*map));
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < map->size(); ++i) {
    const auto it = map->find(std::to_string(i));
    if (it == map->end() || !it->is_string())
      fail(Failure::model, "{}: id2label: expected a name for each of \"0\" to \"{}\", got none for \"{}\"",
           reader.file(), map->size() - 1, i);
    const auto& label = it->get_ref<const std::string&>();
    if (std::find(labels.begin(), labels.end(), label) != labels.end())
      fail(Failure::model, "{}: id2label: expected different names, got {} twice", reader.file(), shown(*it));
    labels.push_back(label);
  }
  return labels;
}

/// Older files give only the number of labels.
std::vector<std::string> numbered_labels(Reader& reader) {
  Dim count = 0;
  if (const Json* j = reader.find("num_labels"); j && !j->is_null()) reader.whole("num_labels", count, 0, 1 << 20);
  std::vector<std::string> labels;
  for (Dim i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

/// Refuses models that are computed in another way than this one.
void check_kind(const Json& json, const std::string& file) {
  const std::pair<const char*, Json> kKinds[] = {{"model_type", "bert"},
                                                 {"position_embedding_type", "absolute"},
                                                 {"is_decoder", false},
                                                 {"add_cross_attention", false}};
  for (const auto& [key, expected] : kKinds)
    if (const auto it = json.find(key); it != json.end() && !it->is_null() && *it != expected)
      fail(Failure::model, "{}: {}: expected {}, got {}", file, key, expected.dump(), shown(*it));
}

void check_shape(const Config& c, const std::string& file) {
  if (c.hidden_size % c.num_attention_heads != 0)
    fail(Failure::model, "{}: hidden_size: expected a multiple of num_attention_heads ({}), got {}", file,
         c.num_attention_heads, c.hidden_size);
}

/// Keys that other programs write into a configuration and a user may carry over without harm.
bool is_known_elsewhere(const std::string& key) {
  static const char* const kKnown[] = {"model_type",
                                       "pad_token_id",
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
  return key.starts_with("pooler_") || key.starts_with("_") ||
         std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown);
}

/// Keys about the weights that were read, which the weights written need not share: their type, and a decoder apart
/// from the word embeddings.
bool is_of_the_weights(const std::string& key) {
  return key == "dtype" || key == "torch_dtype" || key == "tie_word_embeddings";
}

void refuse_unknown(const Reader& reader, const std::string& key) {
  const auto nearest = io::nearest_name(key, reader.used());
  fail(Failure::usage, "{}: unknown key {}; {}", reader.file(), shown(key),
       nearest ? fmt::format("did you mean \"{}\"?", *nearest) : "hint: keys that begin with _ are left alone");
}

}  // namespace

bool Config::is_preset(std::string_view name) {
  return std::any_of(std::begin(kPresets), std::end(kPresets), [&](const Preset& p) { return p.name == name; });
}

Config Config::preset(std::string_view name) {
  for (const Preset& p : kPresets)
    if (p.name == name) {
      Config c;
      c.num_hidden_layers = p.layers;
      c.hidden_size = p.hidden;
      c.num_attention_heads = p.hidden / 64;
      c.intermediate_size = 4 * p.hidden;
      return c;
    }
  fail(Failure::usage, "--config: expected tiny, mini, small, medium, base, large or a .json file, got \"{}\"", name);
}

Config Config::read(const std::filesystem::path& file, UnknownKeys unknown) {
  if (!std::filesystem::is_regular_file(file))
    fail(Failure::model, "{}: expected a model configuration, got no file", file.string());
  return parse(io::read_file(file), file.string(), unknown);
}

Config Config::parse(std::string_view text, const std::string& file, UnknownKeys unknown) {
  Json json;
  try {
    json = Json::parse(text, io::refuse_deep_nesting(file));
  } catch (const Json::parse_error& e) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(e.byte, text.size()));
    fail(Failure::model, "{}:{}: expected JSON, got a syntax error at byte {}", file,
         1 + std::count(text.begin(), end, '\n'), e.byte);
  } catch (const Json::exception&) {
    fail(Failure::model, "{}: expected JSON, got a number that no double can hold", file);
  }
  if (!json.is_object()) fail(Failure::model, "{}: expected a JSON object, got {}", file, shown(json));
  check_kind(json, file);

  constexpr Dim kMost = 1 << 24;
  Config c;
  Reader r(json, file);
  r.whole("vocab_size", c.vocab_size, 1, kMost);
  r.whole("hidden_size", c.hidden_size, 1, 1 << 16);
  r.whole("num_hidden_layers", c.num_hidden_layers, 0, 1024);
  r.whole("num_attention_heads", c.num_attention_heads, 1, 1024);
  r.whole("intermediate_size", c.intermediate_size, 1, 1 << 18);
  r.whole("max_position_embeddings", c.max_position_embeddings, 1, 1 << 20);
  c.type_vocab_size = 16;  // Google's default where a file leaves it out
  r.whole("type_vocab_size", c.type_vocab_size, 1, 1 << 16);
  r.real("hidden_dropout_prob", c.hidden_dropout_prob, 0, 0.999);
  r.real("attention_probs_dropout_prob", c.attention_probs_dropout_prob, 0, 0.999);
  r.real("classifier_dropout", c.classifier_dropout, 0, 0.999);
  r.real("initializer_range", c.initializer_range, 0, 10);
  r.real("layer_norm_eps", c.layer_norm_eps, 0, 1);
  std::string activation = name_of_activation(c.hidden_act);
  r.text("hidden_act", activation);
  c.hidden_act = activation_of(file, activation);
  r.text("problem_type", c.problem_type);
  c.labels = labels_of(r);
  if (std::vector<std::string> numbered = numbered_labels(r); c.labels.empty()) c.labels = std::move(numbered);
  if (const Json* names = r.find("architectures"); names && names->is_array())
    for (const Json& name : *names)
      if (name.is_string()) c.architectures.push_back(name.get<std::string>());
  Json others = Json::object();
  for (const auto& [key, value] : json.items()) {
    if (std::find(r.used().begin(), r.used().end(), key) != r.used().end()) continue;
    if (unknown == UnknownKeys::refuse && !is_known_elsewhere(key)) refuse_unknown(r, key);
    others[key] = value;
  }
  c.others = others.dump();
  check_shape(c, file);
  return c;
}

std::string Config::text() const {
  Json j;
  j["architectures"] = architectures;
  j["model_type"] = "bert";
  j["vocab_size"] = vocab_size;
  j["hidden_size"] = hidden_size;
  j["num_hidden_layers"] = num_hidden_layers;
  j["num_attention_heads"] = num_attention_heads;
  j["intermediate_size"] = intermediate_size;
  j["hidden_act"] = name_of_activation(hidden_act);
  j["hidden_dropout_prob"] = hidden_dropout_prob;
  j["attention_probs_dropout_prob"] = attention_probs_dropout_prob;
  j["classifier_dropout"] = classifier_dropout < 0 ? Json(nullptr) : Json(classifier_dropout);
  j["max_position_embeddings"] = max_position_embeddings;
  j["type_vocab_size"] = type_vocab_size;
  j["initializer_range"] = initializer_range;
  j["layer_norm_eps"] = layer_norm_eps;
  j["pad_token_id"] = 0;
  if (!labels.empty()) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      j["id2label"][std::to_string(i)] = labels[i];
      j["label2id"][labels[i]] = i;
    }
  }
  if (!problem_type.empty()) j["problem_type"] = problem_type;
  const Json unused = Json::parse(others);
  for (const auto& [key, value] : unused.items())
    if (!is_of_the_weights(key)) j[key] = value;
  return j.dump(2) + "\n";
}

}  // namespace bertrand::bert
