// tokenizer.json written, as transformers writes that of a BertTokenizer.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "bert/directory/added_tokens.h"
#include "bert/directory/tokenizer_json.h"
#include "bert/text/utf8.h"
#include "bert/text/vocabulary.h"
#include "io/json.h"
#include "io/split.h"

namespace bertrand::bert {
namespace {

using io::Json;
using text::AddedToken;

/// The tokens of vocab.txt, each a key. None if a line cannot be one of its own: a second blank line, or one with what
/// no token of a tokenizer.json that we read has.
std::optional<Json> vocabulary_object(std::string_view lines) {
  constexpr std::string_view kInNoKey("\r\0", 2);
  Json vocabulary = Json::object();
  std::string valid;
  bool has_blank = false;
  std::int32_t id = 0;
  for (const std::string_view line : io::lines_of(lines)) {
    const bool is_valid = text::drop_invalid_utf8(line, valid).count == 0;
    const std::string_view token = text::strip(is_valid ? line : valid);
    if (token.empty() && std::exchange(has_blank, true)) return std::nullopt;
    if (token.find_first_of(kInNoKey) != token.npos) return std::nullopt;
    io::append(vocabulary, std::string(token), id++);
  }
  return vocabulary;
}

/// The special tokens of the vocabulary by their names, each with its id.
std::map<std::string_view, std::int32_t> special_ids(const Json& vocabulary) {
  std::map<std::string_view, std::int32_t> ids;
  for (const auto& [token, id] : vocabulary.get_ref<const Json::object_t&>())
    if (const auto special = std::ranges::find(text::kSpecialTokens, token); special != text::kSpecialTokens.end())
      ids[*special] = id.get<std::int32_t>();
  return ids;
}

/// In the order of their ids: the package tokenizers adds them one after the other.
Json added_tokens(const std::map<std::string_view, std::int32_t>& specials, std::vector<AddedToken> tokens) {
  for (const auto& [token, id] : specials) tokens.push_back({.text = std::string(token), .id = id, .special = true});
  std::ranges::sort(tokens, {}, &AddedToken::id);
  Json list = Json::array();
  for (const AddedToken& token : tokens) {
    Json each{{"id", token.id}};
    each.update(declaration(token));
    list.push_back(std::move(each));
  }
  return list;
}

Json piece(const char* kind, const char* id, int type) { return {{kind, {{"id", id}, {"type_id", type}}}}; }

/// [CLS] A [SEP], and [CLS] A [SEP] B [SEP] with type 1 from B on.
Json post_processor(const std::map<std::string_view, std::int32_t>& specials) {
  const Json cls = piece("SpecialToken", "[CLS]", 0), a = piece("Sequence", "A", 0),
             sep = piece("SpecialToken", "[SEP]", 0), b = piece("Sequence", "B", 1),
             last = piece("SpecialToken", "[SEP]", 1);
  Json ids = Json::object();
  for (const char* token : {"[CLS]", "[SEP]"})
    ids[token] = {{"id", token}, {"ids", Json::array({specials.at(token)})}, {"tokens", Json::array({token})}};
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({cls, a, sep})},
          {"pair", Json::array({cls, a, sep, b, last})},
          {"special_tokens", std::move(ids)}};
}

}  // namespace

std::optional<std::string> tokenizer_json_text(std::string_view lines, const text::TokenizerOptions& options) {
  std::optional<Json> vocabulary = vocabulary_object(lines);
  if (!vocabulary) return std::nullopt;
  const auto specials = special_ids(*vocabulary);
  for (const char* needed : {"[UNK]", "[CLS]", "[SEP]"})
    if (!specials.contains(needed)) return std::nullopt;
  Json json{{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", added_tokens(specials, options.added_tokens)},
            {"normalizer",
             {{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", true},
              {"strip_accents", nullptr},  // as lowercase
              {"lowercase", options.lower_case}}},
            {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
            {"post_processor", post_processor(specials)},
            {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
            {"model",
             {{"type", "WordPiece"},
              {"unk_token", "[UNK]"},
              {"continuing_subword_prefix", "##"},
              {"max_input_chars_per_word", options.max_chars_per_word}}}};
  io::append(json["model"], "vocab", *std::move(vocabulary));
  return io::json_text(json, 2) + "\n";
}

}  // namespace bertrand::bert
