#include "bert/model/directory.h"

#include <algorithm>
#include <memory>
#include <set>

#include "bert/formats/safetensors.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;
using formats::SafetensorsEntry;
using formats::SafetensorsFile;
using Json = nlohmann::ordered_json;

Json read_json(const fs::path& file) {
  try {
    return Json::parse(formats::read_file(file));
  } catch (const Json::exception& e) {
    fail(Failure::model, "{}: expected JSON, got an error ({})", file.string(), e.what());
  }
}

/// The files that hold the weights: one, or the shards that an index names.
std::vector<fs::path> weight_files(const fs::path& directory) {
  if (fs::is_regular_file(directory)) return {directory};
  if (!fs::is_directory(directory)) fail(Failure::model, "{}: expected a model directory, got nothing there", directory.string());
  if (fs::exists(directory / "model.safetensors")) return {directory / "model.safetensors"};
  if (const fs::path index = directory / "model.safetensors.index.json"; fs::exists(index)) {
    const Json json = read_json(index);
    if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) fail(Failure::model, "{}: weight_map: expected an object", index.string());
    std::set<std::string> names;
    for (const Json& name : json["weight_map"]) {
      if (!name.is_string() || fs::path(name.get<std::string>()).filename() != name.get<std::string>())
        fail(Failure::model, "{}: weight_map: expected names of files in this directory, got {}", index.string(), name.dump());
      names.insert(name.get<std::string>());
    }
    std::vector<fs::path> files;
    for (const std::string& name : names) files.push_back(directory / name);
    return files;
  }
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".pkl" || extension == ".ckpt")
      fail(Failure::model, "{}: pickled weights can run code and are not read; hint: save the model as model.safetensors", entry.path().string());
  }
  fail(Failure::model, "{}: expected model.safetensors, got none", directory.string());
}

/// The name that a parameter has here, for a name found in a file.
std::string canonical(std::string name) {
  const auto replace_end = [&](std::string_view from, std::string_view to) {
    if (name.ends_with(from)) name.replace(name.size() - from.size(), from.size(), to);
  };
  replace_end("LayerNorm.gamma", "LayerNorm.weight");
  replace_end("LayerNorm.beta", "LayerNorm.bias");
  if (name == "cls.predictions.decoder.bias") return "cls.predictions.bias";
  for (const char* part : {"embeddings.", "encoder.", "pooler."})
    if (name.starts_with(part)) return "bert." + name;
  return name;
}

/// Tensors that are copies or no parameters at all.
bool is_redundant(const std::string& name) { return name == "cls.predictions.decoder.weight" || name.ends_with("embeddings.position_ids"); }

std::string joined(const std::vector<std::string>& names, std::size_t most = 6) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i ? ", " : "") + names[i];
  return names.size() > most ? text + fmt::format(" and {} more", names.size() - most) : text;
}

}  // namespace

std::string LoadReport::text() const {
  std::string text = fmt::format("weights: {} loaded, {} missing, {} unused, {} mis-shaped", loaded.size(), missing.size(), unused.size(), mis_shaped.size());
  if (!missing.empty()) text += "\n  missing, initialised from the seed: " + joined(missing);
  if (!unused.empty()) text += "\n  unused: " + joined(unused);
  if (!mis_shaped.empty()) text += "\n  mis-shaped: " + joined(mis_shaped);
  return text;
}

LoadReport load_weights(const fs::path& directory, nn::ParameterSet& parameters,
                        const std::function<bool(const std::string&)>& may_be_mis_shaped) {
  LoadReport report;
  std::vector<std::string> refused;
  std::set<std::string> loaded;
  for (const fs::path& path : weight_files(directory)) {
    const SafetensorsFile file(path);
    for (const SafetensorsEntry& entry : file.entries()) {
      const std::string name = canonical(entry.name);
      const auto* segment = parameters.find(name);
      if (!segment) {
        if (!is_redundant(entry.name)) report.unused.push_back(entry.name);
      } else if (!std::ranges::equal(segment->shape.dims(), entry.dims)) {
        report.mis_shaped.push_back(fmt::format("{}: expected {} (config.json), got [{}]", entry.name, segment->shape, fmt::join(entry.dims, ", ")));
        if (!may_be_mis_shaped || !may_be_mis_shaped(name)) refused.push_back(report.mis_shaped.back());
      } else if (loaded.insert(name).second) {
        formats::load_entry(entry, path, parameters.value(*segment));
      }
    }
  }
  for (const auto& segment : parameters.segments()) (loaded.contains(segment.name) ? report.loaded : report.missing).push_back(segment.name);
  if (!refused.empty())
    fail(Failure::model, "{}: {} tensor{} of another shape than the model's: {}; hint: config.json, vocabulary and weights must be of one model", directory.string(),
         refused.size(), refused.size() == 1 ? "" : "s", joined(refused, 3));
  return report;
}

void require(const LoadReport& report, const fs::path& directory, const std::function<bool(const std::string&)>& may_be_missing) {
  std::vector<std::string> lacking;
  for (const std::string& name : report.missing)
    if (!may_be_missing(name)) lacking.push_back(name);
  if (!lacking.empty()) fail(Failure::model, "{}: weights: {} expected tensors are not there: {}; hint: is it a BERT?", directory.string(), lacking.size(), joined(lacking, 4));
}

TokenizerFacts read_tokenizer_facts(const fs::path& directory) {
  const fs::path file = directory / "tokenizer_config.json";
  if (!fs::exists(file)) return {};
  const Json json = read_json(file);
  if (!json.is_object() || !json.contains("do_lower_case")) return {};
  if (!json["do_lower_case"].is_boolean()) fail(Failure::model, "{}: do_lower_case: expected true or false, got {}", file.string(), json["do_lower_case"].dump());
  return {.lower_case = json["do_lower_case"].get<bool>(), .known = true};
}

std::map<std::string, std::uint32_t> write_directory(formats::Files& files, const fs::path& directory, const DirectoryFiles& contents,
                                                      const nn::ParameterSet& parameters) {
  const auto write_text = [&](const char* name, const std::string& text) {
    formats::FileWriter file(files, directory / name);
    file.write(text);
    file.finish();
  };
  write_text("config.json", contents.config.text());
  write_text("vocab.txt", contents.vocabulary);
  Json tokenizer;
  tokenizer["do_lower_case"] = contents.lower_case;
  for (const char* special : {"unk", "sep", "pad", "cls", "mask"}) {
    std::string upper(special);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    tokenizer[std::string(special) + "_token"] = "[" + upper + "]";
  }
  tokenizer["model_max_length"] = contents.config.max_position_embeddings;
  tokenizer["tokenize_chinese_chars"] = true;
  tokenizer["tokenizer_class"] = "BertTokenizer";
  write_text("tokenizer_config.json", tokenizer.dump(2) + "\n");

  std::vector<formats::NamedTensor> tensors;
  for (const auto& segment : parameters.segments()) tensors.push_back({segment.name, parameters.value(segment)});
  formats::FileWriter weights(files, directory / "model.safetensors");
  auto checksums = formats::write_safetensors(weights, std::move(tensors));
  weights.finish();
  return checksums;
}

}  // namespace bertrand::bert
