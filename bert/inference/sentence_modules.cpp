// modules.json and sentence_bert_config.json read.
#include "bert/inference/sentence_modules.h"

#include <algorithm>

#include "bert/directory/sentence_files.h"
#include "bert/directory/tokenizer_config.h"
#include "io/error.h"
#include "io/json.h"

namespace bertrand::inference {
namespace {

namespace fs = std::filesystem;

/// The names of poolings that a module's config.json has: in pooling_mode, alone or in a list, or before version 6 of
/// sentence-transformers by one flag each.
io::Json pooling_modes(io::JsonReader& reader) {
  if (const io::Json* named = reader.find("pooling_mode"))
    return named->is_array() ? *named : io::Json::array({*named});
  io::Json modes = io::Json::array();
  for (const auto& [flag, mode] : {std::pair("pooling_mode_cls_token", "cls"),
                                   {"pooling_mode_mean_tokens", "mean"},
                                   {"pooling_mode_max_tokens", "max"},
                                   {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
                                   {"pooling_mode_weightedmean_tokens", "weightedmean"},
                                   {"pooling_mode_lasttoken", "lasttoken"}})
    if (reader.flag(flag, false)) modes.push_back(mode);
  return modes;
}

Pooling pooling_of(const fs::path& file, const fs::path& modules) {
  if (!fs::exists(file))
    fail(Failure::model,
         "{}: expected {}, got no such file; hint: copy the whole directory, or --pooling mean --normalize",
         modules.string(), file.string());
  const io::Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  const io::Json modes = pooling_modes(reader);
  if (modes.size() == 1 && modes[0] == "cls") return Pooling::cls;
  if (modes.size() == 1 && modes[0] == "mean") return Pooling::mean;
  fail(Failure::model, "{}: pooling_mode: expected one of \"mean\" and \"cls\", got {}; hint: --pooling", file.string(),
       modes.empty() ? "none" : io::shown(modes));
}

/// A text that sentence-transformers puts before each text that is asked without a prompt.
void refuse_default_prompt(io::JsonReader& reader) {
  const std::string name = reader.text("default_prompt_name", "");
  if (name.empty() || reader.object("prompts").text(name, "").empty()) return;
  fail(Failure::model,
       "{}: default_prompt_name: expected none, as no prompt is added here, got {}; hint: put it before your texts and "
       "give --pooling",
       reader.source(), io::shown(name));
}

/// A model that was trained so that the first numbers of a vector are enough.
void refuse_shorter_vectors(io::JsonReader& reader, std::int64_t hidden_size) {
  const io::Json* const given = reader.find("truncate_dim");
  if (!given || given->is_null() || reader.whole("truncate_dim", {1}) >= hidden_size) return;
  fail(Failure::model,
       "{}: truncate_dim: expected null or {}, as vectors are whole here, got {}; hint: give --pooling, and keep the "
       "first {} numbers of a vector",
       reader.source(), hidden_size, io::shown(*given), io::shown(*given));
}

}  // namespace

SentenceModules read_sentence_modules(const fs::path& directory, std::int64_t hidden_size) {
  const fs::path file = directory / "modules.json";
  SentenceModules found;
  if (!fs::exists(file)) return found;
  const io::Json list = io::read_json(file);
  if (!list.is_array()) fail(Failure::model, "{}: expected a list of modules, got {}", file.string(), io::shown(list));
  for (std::size_t i = 0; i < list.size(); ++i) {
    io::JsonReader module(list[i], {file.string()}, fmt::format("[{}].", i));
    const std::string type = module.text("type"), kind = type.substr(type.rfind('.') + 1);
    const fs::path own = bert::path_of_module(module);
    if (kind == "Pooling" && own.empty()) module.refuse("path", "the directory of the pooling", module.find("path"));
    if (kind == "Pooling") found.pooling = pooling_of(directory / own / "config.json", file);
    else if (kind == "Normalize") found.normalize = true;
    else if (kind != "Transformer")
      module.refuse("type", "Transformer, Pooling or Normalize, which are computed here", module.find("type"));
    if (kind == "Transformer" && !own.empty())
      fail(Failure::model,
           "{}: [{}].path: expected the encoder beside the file, got {}; hint: that directory is a model by itself, "
           "with --pooling",
           file.string(), i, io::shown(own.string()));
    if (kind == "Normalize" && !found.pooling)
      module.refuse("type", "Pooling first, which makes what is normalized", module.find("type"));
  }
  if (!found.pooling) fail(Failure::model, "{}: expected a module Pooling, got none; hint: --pooling", file.string());
  if (const fs::path settings = directory / "config_sentence_transformers.json"; fs::exists(settings)) {
    const io::Json json = io::read_json(settings);
    io::JsonReader reader(json, {settings.string()});
    refuse_default_prompt(reader);
    refuse_shorter_vectors(reader, hidden_size);
  }
  return found;
}

int read_sentence_length(const fs::path& directory, int positions) {
  if (const fs::path file = directory / "sentence_bert_config.json"; fs::exists(file)) {
    const io::Json json = io::read_json(file);
    io::JsonReader reader(json, {file.string()});
    if (const io::Json* length = reader.find("max_seq_length"); length && !length->is_null())
      return std::min(positions, static_cast<int>(reader.whole("max_seq_length", {3, 1 << 20})));
  }
  return static_cast<int>(bert::read_max_length(directory, positions).value_or(positions));
}

void require_lower_case(const fs::path& directory, const text::Tokenizer& tokenizer) {
  const fs::path file = directory / "sentence_bert_config.json";
  if (tokenizer.options().lower_case || !fs::exists(file)) return;
  const io::Json json = io::read_json(file);
  if (io::JsonReader(json, {file.string()}).flag("do_lower_case", false))
    fail(Failure::model,
         "{}: do_lower_case: expected false, as the tokenizer keeps the case of a text, got true; hint: lower-case "
         "your texts, and write false there",
         file.string());
}

}  // namespace bertrand::inference
