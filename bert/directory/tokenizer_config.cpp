// tokenizer_config.json read and written.
#include "bert/directory/tokenizer_config.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;
using io::Json;

constexpr const char* kMaxChars = "max_input_chars_per_word";

}  // namespace

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
  reader.expect("word_tokenizer_type", "basic");
  reader.expect("subword_tokenizer_type", "wordpiece");
  if (!lower_case) return {};
  return reader.flag("do_lower_case");
}

void refuse_other_tokenizer(const fs::path& directory, io::JsonReader config) {
  const auto names_a_class = [](io::JsonReader& file) {
    const Json* kind = file.find("tokenizer_class");
    if (kind && *kind == "BertJapaneseTokenizer") file.refuse("tokenizer_class", "\"BertTokenizer\"", kind);
    return kind != nullptr;
  };
  const fs::path file = directory / "tokenizer_config.json";
  const Json json = fs::exists(file) ? io::read_json(file) : Json::object();
  io::JsonReader own(json, {file.string()});
  if (!names_a_class(own)) names_a_class(config);
}

std::optional<int> read_max_chars(const fs::path& directory) {
  const fs::path file = directory / "tokenizer_config.json";
  if (!fs::exists(file)) return {};
  const Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  if (!reader.find(kMaxChars)) return {};
  return static_cast<int>(reader.whole(kMaxChars, {1, 1 << 20}));
}

std::string tokenizer_config_text(const text::TokenizerOptions& options, Dim positions) {
  Json tokenizer;
  tokenizer["do_lower_case"] = options.lower_case;
  for (const auto& [key, token] :
       {std::pair("unk_token", "[UNK]"), std::pair("sep_token", "[SEP]"), std::pair("pad_token", "[PAD]"),
        std::pair("cls_token", "[CLS]"), std::pair("mask_token", "[MASK]")})
    tokenizer[key] = token;
  tokenizer["model_max_length"] = positions;
  tokenizer["tokenize_chinese_chars"] = true;
  tokenizer["tokenizer_class"] = "BertTokenizer";
  if (options.max_chars_per_word != text::TokenizerOptions::kGooglesMaxChars)
    tokenizer[kMaxChars] = options.max_chars_per_word;
  return io::json_text(tokenizer, 2) + "\n";
}

}  // namespace bertrand::bert
