// The weights of a model directory found and loaded, and a directory written.
#include "bert/directory/model_directory.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "bert/directory/config_file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "nn/tensor_file.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;
using io::Json;
using io::SafetensorsEntry;
using io::SafetensorsFile;

/// The shards that an index names, each a file of its own directory.
std::vector<fs::path> shards(const fs::path& index) {
  const Json json = io::read_json(index);
  std::set<std::string> names;
  for (const Json& value : io::JsonReader(json, {index.string()}).object("weight_map").json()) {
    const std::string name = value.is_string() ? value.get<std::string>() : "";
    if (!name.ends_with(".safetensors") || fs::path(name).filename() != name)
      fail(Failure::model, "{}: weight_map: expected names of .safetensors files in this directory, got {}",
           index.string(), io::shown(value));
    names.insert(name);
  }
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    files.push_back(index.parent_path() / name);
    if (!fs::is_regular_file(files.back()))
      fail(Failure::model, "{}: weight_map: expected {} beside it, got no such file", index.string(), name);
  }
  return files;
}

void refuse_pickle(const fs::path& file) {
  static const std::set<std::string> kPickles = {".bin", ".pt", ".pth", ".pkl", ".ckpt"};
  if (kPickles.contains(file.extension().string()))
    fail(Failure::model, "{}: pickled weights can run code and are not read; hint: save the model as model.safetensors",
         file.string());
}

[[noreturn]] void refuse_without_safetensors(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    refuse_pickle(entry.path());
    if (entry.path().string().ends_with(".ckpt.index"))
      fail(Failure::model, "{}: TensorFlow checkpoints are not read; hint: save the model as model.safetensors",
           entry.path().string());
  }
  fail(Failure::model, "{}: expected model.safetensors, got none", directory.string());
}

/// The files that hold the weights: one, or the shards that an index names.
std::vector<fs::path> weight_files(const fs::path& directory) {
  if (fs::is_regular_file(directory)) {
    refuse_pickle(directory);
    return {directory};
  }
  if (!fs::is_directory(directory))
    fail(Failure::model, "{}: expected a model directory, got nothing there", directory.string());
  if (fs::exists(directory / "model.safetensors")) return {directory / "model.safetensors"};
  if (const fs::path index = directory / "model.safetensors.index.json"; fs::exists(index)) return shards(index);
  refuse_without_safetensors(directory);
}

/// The name that a parameter has here, for a name found in a file: old TensorFlow names of LayerNorm, NVIDIA's of dense
/// layers, and the encoder alone, which has no "bert." before it.
std::string canonical(std::string name) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const auto at = name.rfind(from); at != std::string::npos) name.replace(at, from.size(), to);
  };
  replace("LayerNorm.gamma", "LayerNorm.weight");
  replace("LayerNorm.beta", "LayerNorm.bias");
  replace(".dense_act.", ".dense.");
  for (const char* part : {"embeddings.", "encoder.", "pooler."})
    if (name.starts_with(part)) return "bert." + name;
  return name;
}

constexpr const char* kMaxChars = "max_input_chars_per_word";
constexpr const char* kWordEmbeddings = "bert.embeddings.word_embeddings.weight";
constexpr const char* kDecoder = "cls.predictions.decoder.weight";
/// The second name that a file may give to a parameter, alone or beside the first.
constexpr std::pair<const char*, const char*> kAliases[] = {{kDecoder, kWordEmbeddings},
                                                            {"cls.predictions.decoder.bias", "cls.predictions.bias"}};

/// The tensors of all files of a directory by the names that they have here.
class Weights {
 public:
  struct Found {
    const SafetensorsFile* file;
    const SafetensorsEntry* entry;
    std::string place() const { return fmt::format("{}: tensor \"{}\"", file->path().string(), entry->name); }
  };

  explicit Weights(const fs::path& directory) {
    for (const fs::path& path : weight_files(directory)) {
      files_.push_back(std::make_unique<SafetensorsFile>(path));
      for (const SafetensorsEntry& entry : files_.back()->entries()) insert({files_.back().get(), &entry});
    }
    for (const auto& [alias, name] : kAliases)
      if (const Found* found = find(alias); found && !find(name)) by_name_.emplace(name, *found);
  }

  const Found* find(const std::string& name) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : &it->second;
  }
  const std::map<std::string, Found>& by_name() const { return by_name_; }

 private:
  void insert(const Found& found) {
    const auto [it, is_new] = by_name_.emplace(canonical(found.entry->name), found);
    if (!is_new)
      fail(Failure::model, "{}: expected one of this meaning, got also \"{}\"", found.place(), it->second.entry->name);
  }

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Found> by_name_;
};

/// The decoder of the masked language model is the word embeddings themselves; one with weights of its own is another
/// model.
void check_tied(const Weights& weights) {
  const Weights::Found *decoder = weights.find(kDecoder), *words = weights.find(kWordEmbeddings);
  if (!decoder) return;
  if (decoder->entry->dtype_name != words->entry->dtype_name)
    fail(Failure::model, "{}: expected the numbers of {} (tied), of type {}, got type {}", decoder->place(),
         words->entry->name, words->entry->dtype_name, decoder->entry->dtype_name);
  if (!std::ranges::equal(decoder->entry->bytes, words->entry->bytes))
    fail(Failure::model, "{}: expected the numbers of {} (tied), got others", decoder->place(), words->entry->name);
}

/// A layer beyond the last of config.json would otherwise be left out in silence.
void check_no_further_layers(const Weights& weights, const nn::ParameterSet& parameters) {
  for (const auto& [name, found] : weights.by_name())
    if (name.starts_with("bert.encoder.layer.") && !parameters.find(name))
      fail(Failure::model,
           "{}: expected the encoder of config.json, which has no such parameter; hint: num_hidden_layers?",
           found.place());
}

bool is_alias(const std::string& name) {
  return std::any_of(std::begin(kAliases), std::end(kAliases), [&](const auto& alias) { return name == alias.first; });
}

}  // namespace

nn::LoadReport load_weights(const fs::path& directory, nn::ParameterSet& parameters,
                            const std::function<bool(const std::string&)>& may_be_mis_shaped) {
  const Weights weights(directory);
  check_no_further_layers(weights, parameters);
  if (parameters.find("cls.predictions.bias")) check_tied(weights);
  nn::StoredTensors stored;
  for (const auto& [name, found] : weights.by_name())
    if (parameters.find(name) || (!is_alias(name) && !name.ends_with("embeddings.position_ids")))
      stored.emplace(name, nn::stored_tensor(*found.entry, found.file->path()));
  return nn::load(parameters, stored, directory.string(), may_be_mis_shaped);
}

void load_whole(const fs::path& directory, nn::ParameterSet& parameters) {
  nn::require(load_weights(directory, parameters), directory, [](const std::string&) { return false; });
}

std::optional<bool> read_lower_case(const fs::path& directory) {
  const fs::path file = directory / "tokenizer_config.json";
  if (!fs::exists(file)) return {};
  const Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  // What BERT's own tokenizer does.
  reader.expect("do_basic_tokenize", true);
  reader.expect("tokenize_chinese_chars", true);
  const Json* lower_case = reader.find("do_lower_case");
  reader.expect("strip_accents", lower_case ? *lower_case : Json(true));
  const Json* kind = reader.find("tokenizer_class");
  if (kind && *kind == "BertJapaneseTokenizer") reader.refuse("tokenizer_class", "\"BertTokenizer\"", kind);
  if (!lower_case) return {};
  return reader.flag("do_lower_case");
}

std::optional<int> read_max_chars(const fs::path& directory) {
  const fs::path file = directory / "tokenizer_config.json";
  if (!fs::exists(file)) return {};
  const Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  if (!reader.find(kMaxChars)) return {};
  return static_cast<int>(reader.whole(kMaxChars, {1, 1 << 20}));
}

bool is_model_file(const std::string& name) {
  static const std::set<std::string> kNames = {
      "config.json",       "bert_config.json",       "vocab.txt", "tokenizer.json", "tokenizer_config.json",
      "added_tokens.json", "special_tokens_map.json"};
  return kNames.contains(name) || name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") ||
         name.find(".ckpt.") != std::string::npos;
}

std::vector<fs::path> model_files(const fs::path& directory) {
  if (!fs::is_directory(directory)) return {directory};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory))
    if (is_model_file(entry.path().filename().string())) files.push_back(entry.path());
  return files;
}

namespace {

std::string tokenizer_config(const DirectoryFiles& contents) {
  Json tokenizer;
  tokenizer["do_lower_case"] = contents.tokenizer.lower_case;
  for (const auto& [key, token] :
       {std::pair("unk_token", "[UNK]"), std::pair("sep_token", "[SEP]"), std::pair("pad_token", "[PAD]"),
        std::pair("cls_token", "[CLS]"), std::pair("mask_token", "[MASK]")})
    tokenizer[key] = token;
  tokenizer["model_max_length"] = contents.config.max_position_embeddings;
  tokenizer["tokenize_chinese_chars"] = true;
  tokenizer["tokenizer_class"] = "BertTokenizer";
  if (contents.tokenizer.max_chars_per_word != text::TokenizerOptions::kGooglesMaxChars)
    tokenizer[kMaxChars] = contents.tokenizer.max_chars_per_word;
  return io::json_text(tokenizer, 2) + "\n";
}

}  // namespace

std::map<std::string, std::uint32_t> write_directory(io::Files& files, const fs::path& directory,
                                                     const DirectoryFiles& contents,
                                                     const nn::ParameterSet& parameters) {
  io::write_file(files, directory / "config.json", config_text(contents.config));
  io::write_file(files, directory / "vocab.txt", contents.vocabulary);
  if (!contents.tokenizer.added_tokens.empty())
    io::write_file(files, directory / "added_tokens.json", contents.tokenizer.added_tokens);
  io::write_file(files, directory / "tokenizer_config.json", tokenizer_config(contents));
  return nn::save(parameters, files, directory / "model.safetensors");
}

}  // namespace bertrand::bert
