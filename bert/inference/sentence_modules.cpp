// modules.json and sentence_bert_config.json read.
#include "bert/inference/sentence_modules.h"

#include "io/error.h"
#include "io/json.h"

namespace bertrand::inference {
namespace {

namespace fs = std::filesystem;

/// The one pooling that a module's config.json switches on. Without a file or a word of it that is the mean.
Pooling pooling_of(const fs::path& file) {
  if (!fs::exists(file)) return Pooling::mean;
  const io::Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  std::optional<Pooling> pooling;
  for (const auto& [key, fallback, own] : {std::tuple("pooling_mode_cls_token", false, std::optional(Pooling::cls)),
                                           {"pooling_mode_mean_tokens", true, Pooling::mean},
                                           {"pooling_mode_max_tokens", false, std::nullopt},
                                           {"pooling_mode_mean_sqrt_len_tokens", false, std::nullopt},
                                           {"pooling_mode_weightedmean_tokens", false, std::nullopt},
                                           {"pooling_mode_lasttoken", false, std::nullopt}}) {
    if (!reader.flag(key, fallback)) continue;
    if (!own || pooling)
      fail(Failure::model, "{}: {}: expected either the mean of all tokens or [CLS] alone, got true; hint: --pooling",
           file.string(), key);
    pooling = own;
  }
  if (!pooling)
    fail(Failure::model, "{}: expected the mean of all tokens or [CLS], got no pooling; hint: --pooling",
         file.string());
  return *pooling;
}

}  // namespace

SentenceModules read_sentence_modules(const fs::path& directory) {
  const fs::path file = directory / "modules.json";
  SentenceModules found;
  if (!fs::exists(file)) return found;
  const io::Json list = io::read_json(file);
  if (!list.is_array()) fail(Failure::model, "{}: expected a list of modules, got {}", file.string(), io::shown(list));
  for (std::size_t i = 0; i < list.size(); ++i) {
    io::JsonReader module(list[i], {file.string()}, fmt::format("[{}].", i));
    const std::string type = module.text("type"), kind = type.substr(type.rfind('.') + 1);
    if (kind == "Pooling") found.pooling = pooling_of(directory / module.text("path") / "config.json");
    else if (kind == "Normalize") found.normalize = true;
    else if (kind != "Transformer")
      module.refuse("type", "Transformer, Pooling or Normalize, which are computed here", module.find("type"));
  }
  return found;
}

std::optional<int> read_sentence_length(const fs::path& directory) {
  const fs::path file = directory / "sentence_bert_config.json";
  if (!fs::exists(file)) return {};
  const io::Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  reader.expect("do_lower_case", false);  // the tokenizer says that
  const io::Json* length = reader.find("max_seq_length");
  if (!length || length->is_null()) return {};
  return static_cast<int>(reader.whole("max_seq_length", {3, 1 << 20}));
}

}  // namespace bertrand::inference
