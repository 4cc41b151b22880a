// Weights found: safetensors before checkpoints of TensorFlow, and what is said if there are neither.
#include "bert/directory/located.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <system_error>

#include "bert/directory/model_directory.h"
#include "bert/directory/sentence_files.h"
#include "io/descriptor.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/input_files.h"
#include "io/json.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;
using io::Json;

constexpr const char* kShardIndex = "model.safetensors.index.json";
constexpr std::string_view kIndex = ".index", kShard = ".data-";  // of a checkpoint

fs::path with_index(const fs::path& prefix) { return prefix.string() + std::string(kIndex); }

/// Without ".index".
fs::path prefix_of(const fs::path& index) {
  const std::string text = index.string();
  return text.substr(0, text.size() - kIndex.size());
}

bool is_index(const fs::path& file) { return file.extension() == kIndex && fs::is_regular_file(file); }

/// The shards that an index names, each a file of its own directory.
std::map<fs::path, std::vector<std::string>> shards(const fs::path& index) {
  const Json json = io::read_json(index);
  std::map<fs::path, std::vector<std::string>> files;
  const io::JsonReader map = io::JsonReader(json, {index.string()}).object("weight_map");
  for (const auto& [tensor, value] : map.json().items()) {
    const std::string name = value.is_string() ? value.get<std::string>() : "";
    if (!name.ends_with(".safetensors") || fs::path(name).filename() != name)
      fail(Failure::model, "{}: weight_map: expected names of .safetensors files in this directory, got {}",
           index.string(), io::shown(value));
    files[index.parent_path() / name].push_back(tensor);
  }
  for (const auto& [file, tensors] : files)
    if (!fs::is_regular_file(file))
      fail(Failure::model, "{}: weight_map: expected {} beside it, got no such file", index.string(),
           file.filename().string());
  return files;
}

/// Weights of forms that are known and not read.
void refuse_other_form(const fs::path& file) {
  static const std::set<std::string> kPickles = {".bin", ".pt", ".pth", ".pkl", ".ckpt"};
  static const std::set<std::string> kKeras = {".h5", ".hdf5", ".keras"};
  const std::string ending = file.extension().string();
  if (kPickles.contains(ending) && fs::is_regular_file(file))
    fail(Failure::model, "{}: pickled weights can run code and are not read; hint: save the model as model.safetensors",
         file.string());
  if (kKeras.contains(ending))
    fail(Failure::model,
         "{}: weights of Keras are not read; hint: save the model as model.safetensors (transformers) or as a "
         "checkpoint (tf.train.Checkpoint)",
         file.string());
}

/// By its name or, as in the cache of Hugging Face, by its beginning: 8 bytes and JSON.
bool may_be_safetensors(const fs::path& file) {
  std::array<char, 9> beginning{};
  io::read_at(io::open_to_read(file).number(), beginning.data(), beginning.size(), 0);
  return file.extension() == ".safetensors" || beginning.back() == '{';
}

/// All names in a directory, sorted.
std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// The checkpoint that the text file `checkpoint` names as the newest: model_checkpoint_path: "model.ckpt-343".
fs::path newest_checkpoint(const fs::path& file) {
  constexpr std::string_view kKey = "model_checkpoint_path:";
  const std::string text = io::read_small_file(file, "checkpoint");
  const std::size_t key = text.starts_with(kKey) ? 0 : text.find(fmt::format("\n{}", kKey));
  const std::size_t open = key == std::string::npos ? key : text.find('"', key);
  const std::size_t close = open == std::string::npos ? open : text.find('"', open + 1);
  if (close == std::string::npos) fail(Failure::model, "{}: expected {} \"<name>\", got none", file.string(), kKey);
  const fs::path named = text.substr(open + 1, close - open - 1);
  // A directory that was moved still names the old place; and no file of a model names one outside its directory.
  const fs::path beside = file.parent_path() / named.filename();
  if (is_index(with_index(beside))) return beside;
  fail(Failure::model, "{}: expected the checkpoint that it names beside it, {}, got no such file", file.string(),
       with_index(beside).string());
}

/// Empty if there is none.
fs::path checkpoint_in(const fs::path& directory) {
  if (const fs::path file = directory / "checkpoint"; fs::is_regular_file(file)) return newest_checkpoint(file);
  std::vector<std::string> names;
  for (const fs::path& file : files_in(directory))
    if (is_index(file)) names.push_back(prefix_of(file).filename().string());
  if (names.size() > 1)
    fail(Failure::model, "{}: expected one checkpoint, got {}; hint: name one of them, as {}", directory.string(),
         fmt::join(names, ", "), (directory / names[0]).string());
  return names.empty() ? fs::path() : directory / names[0];
}

WeightFiles checkpoint(const fs::path& prefix) {
  return {.safetensors = {}, .checkpoint = prefix, .named = with_index(prefix)};
}

/// Weights that are there under another name than a model's.
std::string hint_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name == "adapter_model.safetensors") return "; hint: merge the adapter into its model (merge_and_unload of peft)";
  if (name.ends_with(".safetensors") && name.find("-of-") != std::string::npos)
    return fmt::format("; hint: {} names the parts, copy it too", kShardIndex);
  if (name == "optimizer.safetensors") return "";
  if (name.ends_with(".safetensors")) return fmt::format("; hint: if it is the model, give {} itself", file.string());
  if (name.ends_with(".onnx")) return "; hint: ONNX is not read, give the model that was exported";
  return "";
}

WeightFiles weights_in(const fs::path& directory) {
  const fs::path whole = directory / "model.safetensors", index = directory / kShardIndex;
  if (fs::exists(whole)) return {.safetensors = {{whole, {}}}, .checkpoint = {}, .named = whole};
  if (fs::exists(index)) return {.safetensors = shards(index), .checkpoint = {}, .named = index};
  if (const fs::path prefix = checkpoint_in(directory); !prefix.empty()) return checkpoint(prefix);
  std::string hint;
  for (const fs::path& file : files_in(directory)) {
    refuse_other_form(file);
    if (hint.empty()) hint = hint_of(file);
  }
  fail(Failure::model, "{}: expected model.safetensors or a TensorFlow checkpoint, got neither{}", directory.string(),
       hint);
}

/// A directory that may not be searched is none: who reads its files says why.
bool is_saved_model(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_regular_file(directory / "saved_model.pb", ignored);
}

/// Where the checkpoint of a SavedModel is.
fs::path variables_of(const fs::path& saved_model) { return saved_model / "variables" / "variables"; }

/// The SavedModel that a model is, or of which it is the checkpoint; empty if there is none.
fs::path saved_model_of(const fs::path& model) {
  if (is_saved_model(model)) return model;
  const fs::path around = (model.parent_path() / "..").lexically_normal();
  return model.parent_path().filename() == "variables" && is_saved_model(around) ? around : fs::path();
}

/// "owner/name", or a name alone, as on Hugging Face's hub.
bool may_be_hub_name(const fs::path& model) {
  std::error_code ignored;
  const bool in_nothing = !model.has_parent_path() || !fs::exists(model.parent_path(), ignored);
  return model.is_relative() && in_nothing && std::distance(model.begin(), model.end()) <= 2 && !model.has_extension();
}

std::string hint_of_absent(const fs::path& model) {
  if (!may_be_hub_name(model)) return io::hint_of_absent(model, io::Named::any);
  const std::string near = io::near_beside(model, io::Named::any);
  return near.empty() ? "; hint: nothing is downloaded: git clone or hf download fetch a directory of that name" : near;
}

bool is_there(const fs::path& model) { return fs::exists(model) || is_index(with_index(model)); }

}  // namespace

void require_model(const fs::path& model) {
  if (!is_there(model))
    fail(Failure::model, "{}: expected a model directory or a checkpoint, got nothing there{}", model.string(),
         hint_of_absent(model));
}

fs::path directory_of(const fs::path& model) {
  if (const fs::path saved_model = saved_model_of(model); !saved_model.empty()) return saved_model / "assets.extra";
  if (fs::is_directory(model) || !is_there(model)) return model;
  return io::parent_of(model);
}

WeightFiles weight_files(const fs::path& model) {
  if (is_saved_model(model)) return checkpoint(variables_of(model));
  if (fs::is_directory(model)) return weights_in(model);
  if (is_index(with_index(model))) return checkpoint(model);
  if (is_index(model)) return checkpoint(prefix_of(model));
  require_model(model);
  refuse_other_form(model);
  const std::string name = model.filename().string();
  if (name.find(kShard) != std::string::npos)
    fail(Failure::model, "{}: expected the .index of a checkpoint, got a shard of it; hint: name the .index",
         model.string());
  if (!may_be_safetensors(model))
    fail(Failure::model,
         "{}: expected a model directory (config.json, model.safetensors, vocab.txt), a .safetensors file or a "
         "TensorFlow checkpoint, got another file{}",
         model.string(), is_model_file(name) ? "; hint: name its directory" : "");
  return {.safetensors = {{model, {}}}, .checkpoint = {}, .named = model};
}

bool is_model_file(const std::string& name) {
  static const std::set<std::string> kNames = {
      "config.json",       "bert_config.json",        "vocab.txt", "tokenizer.json", "tokenizer_config.json",
      "added_tokens.json", "special_tokens_map.json", "checkpoint"};
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  return kNames.contains(name) || std::ranges::find(kSentenceFiles, name) != kSentenceFiles.end() ||
         ends(".safetensors") || ends(".safetensors.index.json") || ends(kIndex) || has(".ckpt.") || has(".ckpt-") ||
         has(kShard);
}

std::vector<fs::path> model_files(const fs::path& model) {
  require_model(model);
  std::vector<fs::path> files;
  const auto add_known = [&](const fs::path& directory) {
    for (const fs::path& file : files_in(directory))
      if (is_model_file(file.filename().string())) files.push_back(file);
  };
  const fs::path directory = directory_of(model);
  add_known(directory);
  if (const fs::path saved_model = saved_model_of(model); !saved_model.empty()) {
    files.push_back(saved_model / "saved_model.pb");
    if (const fs::path variables = variables_of(saved_model).parent_path(); fs::is_directory(variables))
      add_known(variables);
  }
  // A file of weights may have any name.
  if (fs::is_regular_file(model) && !is_model_file(model.filename().string())) files.push_back(model);
  try {
    for (const fs::path& own : module_directories(directory))
      std::ranges::copy(files_of_module(directory / own), std::back_inserter(files));
  } catch (const Error& error) {
    if (error.failure() != Failure::model) throw;  // a damaged modules.json is refused where it is needed
  }
  return files;
}

fs::path weights_file(const fs::path& model) { return weight_files(model).named; }

}  // namespace bertrand::bert
