// tokenizer.json checked key by key to be BERT's kind.
#include "bert/directory/tokenizer_json.h"

#include <utility>
#include <vector>

#include "bert/directory/added_tokens.h"
#include "io/error.h"
#include "io/input_files.h"
#include "io/json.h"

namespace bertrand::bert {
namespace {

using io::Json;
using io::shown;

/// `json`.key, null if there is none.
const Json& at(const Json& json, const char* key) {
  static const Json none;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : none;
}

void expect(const Json& got, const Json& expected, std::string_view key, const std::string& file) {
  if (got != expected) fail(Failure::model, "{}: {}: expected {}, got {}", file, key, shown(expected), shown(got));
}

/// sentence-transformers 6 puts Lowercase before a BertNormalizer, which changes no character if that lower-cases too.
/// The BertNormalizer of such a sequence; what is no sequence is given back.
const Json& without_lowercase(const Json& normalizer, const std::string& file) {
  if (at(normalizer, "type") != "Sequence") return normalizer;
  std::vector<const Json*> others;
  for (const Json& part : at(normalizer, "normalizers"))
    if (at(part, "type") != "Lowercase") others.push_back(&part);
  if (others.size() != 1 || at(*others[0], "type") != "BertNormalizer" || at(*others[0], "lowercase") != true)
    fail(Failure::model,
         "{}: normalizer: expected BertNormalizer, or a Sequence of Lowercase and one with \"lowercase\": true, got {}",
         file, shown(normalizer));
  return *others[0];
}

/// Lower-casing and stripping accents go together in BERT; an absent strip_accents follows lowercase.
bool read_lower_case(const Json& given, const std::string& file) {
  const Json& normalizer = without_lowercase(given, file);
  expect(at(normalizer, "type"), "BertNormalizer", "normalizer.type", file);
  const Json& lower_case = at(normalizer, "lowercase");
  if (!lower_case.is_boolean())
    fail(Failure::model, "{}: normalizer.lowercase: expected true or false, got {}", file, shown(lower_case));
  if (const Json& strip = at(normalizer, "strip_accents"); !strip.is_null())
    expect(strip, lower_case, "normalizer.strip_accents", file);
  for (const char* key : {"clean_text", "handle_chinese_chars"})
    expect(at(normalizer, key), true, std::string("normalizer.") + key, file);
  return lower_case.get<bool>();
}

/// What a template puts together, with each type that is not 0: "[CLS] A [SEP] B:1 [SEP]:1".
std::string made_by(const Json& pieces) {
  std::string made;
  for (const Json& piece : pieces)
    for (const Json& what : piece) {
      const Json &id = at(what, "id"), &type = at(what, "type_id");
      if (!made.empty()) made += ' ';
      made += id.is_string() ? id.get<std::string>() : "?";
      if (!type.is_null() && type != 0) made.append(":").append(shown(type));
    }
  return made;
}

bool is_template_of_bert(const Json& given) {
  if (at(given, "type") != "TemplateProcessing" || made_by(at(given, "single")) != "[CLS] A [SEP]") return false;
  const Json& pair = at(given, "pair");
  return pair.is_null() || made_by(pair) == "[CLS] A [SEP] B:1 [SEP]:1";
}

/// The package tokenizers writes null for a tokenizer that puts nothing about a text. A file that does not have the key
/// at all was not written by it, and is taken for BERT's.
void check_special_tokens(const Json& json, const std::string& file) {
  if (!json.contains("post_processor")) return;
  const Json& given = json["post_processor"];
  const bool is_template = is_template_of_bert(given);
  if (!is_template && at(given, "type") != "BertProcessing")
    fail(Failure::model,
         "{}: post_processor: expected BertProcessing or a TemplateProcessing that makes [CLS] A [SEP] of a text A, "
         "and [CLS] A [SEP] B [SEP] of two with type 1 from B on, got {}; hint: beside a vocab.txt it may be another",
         file, shown(given));
  for (const auto& [token, key] : {std::pair("[CLS]", "cls"), std::pair("[SEP]", "sep")}) {
    const Json& id = at(at(at(json, "model"), "vocab"), token);
    if (id.is_null()) continue;
    if (!is_template) expect(at(given, key), {token, id}, std::string("post_processor.") + key, file);
    else if (const Json& own = at(at(given, "special_tokens"), token); !own.is_null())
      expect(at(own, "ids"), Json::array({id}), fmt::format("post_processor.special_tokens.{}.ids", token), file);
  }
}

std::string read_vocabulary(const Json& vocab, const std::string& file) {
  if (!vocab.is_object() || vocab.empty())
    fail(Failure::model, "{}: model.vocab: expected an object of tokens and ids, got {}", file, shown(vocab));
  std::vector<const std::string*> tokens(vocab.size());
  for (auto it = vocab.begin(); it != vocab.end(); ++it) {
    const std::string& token = it.key();
    const Json& id = it.value();
    if (!id.is_number_unsigned() || id.get<std::size_t>() >= tokens.size() || tokens[id.get<std::size_t>()])
      fail(Failure::model, "{}: model.vocab: expected each id from 0 to {} once, got {} for {}", file,
           tokens.size() - 1, shown(id), shown(token));
    if (token.find_first_of("\n\r") != std::string::npos)
      fail(Failure::model, "{}: model.vocab: expected tokens of one line, got {}", file, shown(token));
    tokens[id.get<std::size_t>()] = &token;
  }
  std::string lines;
  for (const std::string* token : tokens) lines += *token + "\n";
  return lines;
}

}  // namespace

TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& file) {
  const Json json = io::parse_json(text, {file});
  if (!json.is_object()) fail(Failure::model, "{}: expected a JSON object, got {}", file, shown(json));
  const Json& model = at(json, "model");
  if (model.is_object() && model.contains("type"))  // old files leave it out
    expect(model["type"], "WordPiece", "model.type", file);
  expect(at(model, "continuing_subword_prefix"), "##", "model.continuing_subword_prefix", file);
  expect(at(model, "unk_token"), "[UNK]", "model.unk_token", file);
  expect(at(at(json, "pre_tokenizer"), "type"), "BertPreTokenizer", "pre_tokenizer.type", file);
  check_special_tokens(json, file);
  constexpr std::int64_t kDefault = 100;
  const std::int64_t most =
      io::JsonReader(model, {file}, "model.").whole("max_input_chars_per_word", {1, 1 << 20}, kDefault);
  return {.vocabulary = read_vocabulary(at(model, "vocab"), file),
          .lower_case = read_lower_case(at(json, "normalizer"), file),
          .max_chars_per_word = static_cast<int>(most),
          .added = parse_added_tokens(at(json, "added_tokens"), file)};
}

TokenizerJson read_tokenizer_json(const std::filesystem::path& file) {
  return parse_tokenizer_json(io::read_small_file(file, "tokenizer"), file.string());
}

}  // namespace bertrand::bert
