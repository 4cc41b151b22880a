// tokenizer_config.json read and written.
#include "bert/directory/tokenizer_config.h"

#include <algorithm>
#include <set>

#include "bert/directory/added_tokens.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;
using io::Json;

/// A token that is written as a text or as an object with flags.
const Json& content_of(const Json& token) {
  return token.is_object() && token.contains("content") ? token["content"] : token;
}

constexpr const char* kMaxChars = "max_input_chars_per_word";

/// The classes of transformers that are BERT's tokenizer under another name, or take theirs from tokenizer.json, which
/// is checked. MPNet's is none of them: it joins two texts in another way.
bool is_class_of_bert(const Json& kind) {
  static const std::set<std::string> kKnown = {
      "BertTokenizer",   "ConvBertTokenizer",   "DistilBertTokenizer",  "ElectraTokenizer",    "LayoutLMTokenizer",
      "LxmertTokenizer", "MobileBertTokenizer", "SqueezeBertTokenizer", "PreTrainedTokenizer", "TokenizersBackend"};
  std::string name = kind.is_string() ? kind.get<std::string>() : "";
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return kKnown.contains(name);
}

/// Code of the model's own: a list, or by the class that it stands for.
void refuse_code(io::JsonReader& file) {
  const Json* code = file.find("auto_map");
  if (code && code->is_object()) code = code->contains("AutoTokenizer") ? &(*code)["AutoTokenizer"] : nullptr;
  if (code && !code->is_null()) file.refuse("auto_map", "no tokenizer of its own, which would be code", code);
}

/// Texts are cut and joined with the tokens of these names.
void check_token_names(io::JsonReader& file) {
  for (const auto& [key, token] : {std::pair("unk_token", "[UNK]"), std::pair("cls_token", "[CLS]"),
                                   std::pair("sep_token", "[SEP]"), std::pair("mask_token", "[MASK]")})
    if (const Json* named = file.find(key); named && !named->is_null() && content_of(*named) != token)
      file.refuse(key, io::shown(token), named);
}

/// Whether transformers has token types of it: as a list of what the model is given says, else by the class.
bool gives_token_types(io::JsonReader& file) {
  if (const Json* inputs = file.find("model_input_names"); inputs && inputs->is_array())
    return std::ranges::find(*inputs, "token_type_ids") != inputs->end();
  const Json* kind = file.find("tokenizer_class");
  return !kind || (*kind != "DistilBertTokenizer" && *kind != "DistilBertTokenizerFast");
}

}  // namespace

bool names_tokenizer_class(io::JsonReader& file) {
  refuse_code(file);
  const Json* kind = file.find("tokenizer_class");
  if (!kind || kind->is_null()) return false;
  if (!is_class_of_bert(*kind)) file.refuse("tokenizer_class", "\"BertTokenizer\" or one that does the same", kind);
  return true;
}

TokenizerConfig read_tokenizer_config(const fs::path& directory) {
  const fs::path file = directory / "tokenizer_config.json", map = directory / "special_tokens_map.json";
  const Json json = fs::exists(file) ? io::read_json(file) : Json::object();
  io::JsonReader reader(json, {file.string()});
  check_token_names(reader);
  // In transformers the older file has the last word, unless the newer one has a list of all added tokens.
  if (!reader.find("added_tokens_decoder") && fs::exists(map)) {
    const Json older = io::read_json(map);
    io::JsonReader of_map(older, {map.string()});
    check_token_names(of_map);
  }
  // What BERT's own tokenizer does.
  reader.expect("do_basic_tokenize", true);
  reader.expect("tokenize_chinese_chars", true);
  reader.expect("word_tokenizer_type", "basic");
  reader.expect("subword_tokenizer_type", "wordpiece");
  reader.expect("truncation_side", "right");
  const Json* lower_case = reader.find("do_lower_case");
  static const Json yes = true;
  reader.expect("strip_accents", lower_case ? *lower_case : yes);  // a temporary would make a copy of either
  TokenizerConfig config{.lower_case = {},
                         .max_chars_per_word = {},
                         .names_class = names_tokenizer_class(reader),
                         .gives_token_types = gives_token_types(reader)};
  if (lower_case) config.lower_case = reader.flag("do_lower_case");
  if (reader.find(kMaxChars)) config.max_chars_per_word = static_cast<int>(reader.whole(kMaxChars, {1, 1 << 20}));
  return config;
}

std::optional<Dim> read_max_length(const fs::path& directory, Dim positions) {
  constexpr Dim kLeast = 3;  // [CLS], a piece, [SEP]
  const fs::path file = directory / "tokenizer_config.json";
  if (!fs::exists(file)) return {};
  const Json json = io::read_json(file);
  const Json* length = io::JsonReader(json, {file.string()}).find("model_max_length");
  if (!length || !length->is_number_integer() || *length < kLeast || *length > positions) return {};
  return length->get<Dim>();
}

std::string tokenizer_config_text(const text::TokenizerOptions& options, Dim max_length) {
  Json tokenizer;
  tokenizer["do_lower_case"] = options.lower_case;
  for (const auto& [key, token] :
       {std::pair("unk_token", "[UNK]"), std::pair("sep_token", "[SEP]"), std::pair("pad_token", "[PAD]"),
        std::pair("cls_token", "[CLS]"), std::pair("mask_token", "[MASK]")})
    tokenizer[key] = token;
  tokenizer["model_max_length"] = max_length;
  tokenizer["tokenize_chinese_chars"] = true;
  tokenizer["tokenizer_class"] = "BertTokenizer";
  if (options.max_chars_per_word != text::TokenizerOptions::kGooglesMaxChars)
    tokenizer[kMaxChars] = options.max_chars_per_word;
  declare_added_tokens(tokenizer, options.added_tokens);
  return io::json_text(tokenizer, 2) + "\n";
}

}  // namespace bertrand::bert
