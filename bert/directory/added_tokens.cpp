// Added tokens, which four files may declare, read into one list.
#include "bert/directory/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "bert/text/tokenizer.h"
#include "io/error.h"
#include "io/input_files.h"
#include "io/numbers.h"
#include "io/say.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;
using io::Json;
using text::AddedToken;

constexpr std::pair<const char*, bool AddedToken::*> kFlags[] = {{"single_word", &AddedToken::single_word},
                                                                 {"lstrip", &AddedToken::lstrip},
                                                                 {"rstrip", &AddedToken::rstrip},
                                                                 {"normalized", &AddedToken::normalized},
                                                                 {"special", &AddedToken::special}};

AddedToken token_of(io::JsonReader reader) {
  AddedToken token{.text = reader.text("content")};
  for (const auto& [key, flag] : kFlags) token.*flag = reader.flag(key, false);
  return token;
}

/// The tokens that the files read so far declare. Of two declarations the first has the flags.
class Declared {
 public:
  explicit Declared(const text::Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// An id below 0 is not known to `file`.
  void add(const AddedToken& token, const std::string& file) {
    if (std::ranges::count(text::kSpecialTokens, token.text) > 0) return;
    AddedToken& known = tokens_[token.text];
    if (known.text.empty()) {  // not declared so far
      known = token;
      known.id = vocabulary_.find(token.text);
      require_line(token.text, file);
      declared_.push_back(token.text);
    }
    if (token.id < 0 || token.id == known.id) return;
    if (known.id >= 0 || token.id < vocabulary_.size() || !ids_.insert(token.id).second)
      fail(Failure::model, "{}: {}: expected the number of a row that no other token has, got {}", file,
           io::shown(token.text), token.id);
    known.id = token.id;
  }

  /// Warns of tokens of an older file that the newer one lacks.
  void pass_over(const fs::path& older, const fs::path& newer) const {
    const Json json = io::read_json(older);
    std::size_t others = 0;
    for (const auto& [token, id] : io::JsonReader(json, {older.string()}).json().items())
      others += !tokens_.contains(token) && vocabulary_.find(token) < 0;
    if (others > 0)
      io::warn("{}: expected no token that added_tokens_decoder of {} lacks, got {}: passed over, as in transformers",
               older.string(), newer.filename().string(), others);
  }

  /// Gives those that no file numbers the next ids, as transformers does: in the order in which they were declared.
  void number_others() {
    std::int32_t next = ids_.empty() ? vocabulary_.size() : *ids_.rbegin() + 1;
    for (const std::string& text : declared_)
      if (AddedToken& token = tokens_.at(text); token.id < 0) token.id = next++;
  }

  /// Those with an id below `rows`, in the order of their ids.
  std::vector<AddedToken> with_rows(const fs::path& directory, Dim rows) const {
    std::vector<AddedToken> tokens;
    std::vector<std::string> others;
    for (const auto& [text, token] : tokens_) {
      if (token.id < rows) tokens.push_back(token);
      else others.push_back(text);
    }
    if (!others.empty())
      io::warn("{}: {} has no row of the word embeddings (vocab_size {}): it is read piece by piece",
               directory.string(),
               others.size() == 1 ? others.front()
                                  : fmt::format("each of {} and {} more", others.front(), others.size() - 1),
               rows);
    std::ranges::sort(tokens, {}, &AddedToken::id);
    return tokens;
  }

 private:
  /// It is one of vocab.txt.
  static void require_line(const std::string& text, const std::string& file) {
    if (text.empty() || text::strip(text) != text || text.find('\n') != text.npos)
      fail(Failure::model, "{}: expected added tokens of one line without white space around them, got {}", file,
           io::shown(text));
  }

  const text::Vocabulary& vocabulary_;
  std::map<std::string, AddedToken> tokens_;
  std::vector<std::string> declared_;  // their texts, in that order
  std::set<std::int32_t> ids_;         // those behind the vocabulary
};

/// The special tokens that a file names: texts, or objects with flags, in a list or by names of their own. As in
/// transformers additional_special_tokens, the older name, counts if no list came before it, in this file or another.
void add_named(Declared& declared, io::JsonReader& reader, bool& has_list) {
  for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
    const Json* named = reader.find(key);
    if (!named || named->empty()) continue;  // null is empty too
    if (!named->is_structured()) reader.refuse(key, "a list of tokens", named);
    const bool is_older_name = std::string_view(key) == "additional_special_tokens";
    if (is_older_name && has_list) continue;
    has_list = has_list || named->is_array();
    for (const Json& each : *named) {
      AddedToken token = each.is_string() ? AddedToken{.text = each.get<std::string>()}
                                          : token_of({each, {reader.source()}, std::string(key) + "."});
      token.special = true;
      declared.add(token, reader.source());
    }
  }
}

std::int32_t checked_id(const Json& id, const std::string& token, const std::string& file) {
  constexpr std::int32_t kMost = 1 << 24;
  if (!id.is_number_unsigned() || id > kMost)
    fail(Failure::model, "{}: {}: expected the number of a row that no other token has, got {}", file, io::shown(token),
         io::shown(id));
  return id.get<std::int32_t>();
}

/// Whether it has a list of all added tokens.
bool add_of_tokenizer_config(Declared& declared, const fs::path& file, bool& has_list) {
  const Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  const Json* const tokens = reader.find("added_tokens_decoder");
  const bool has_all = tokens && !tokens->is_null();
  if (has_all)
    for (const auto& [number, each] : reader.object("added_tokens_decoder").json().items()) {
      AddedToken token = token_of({each, {file.string()}, fmt::format("added_tokens_decoder.{}.", number)});
      const auto id = io::whole_number(number);
      token.id = checked_id(id ? Json(static_cast<std::uint64_t>(*id)) : Json(number), token.text, file.string());
      declared.add(token, file.string());
    }
  add_named(declared, reader, has_list);
  return has_all;
}

void add_of_special_tokens_map(Declared& declared, const fs::path& file, bool& has_list) {
  const Json json = io::read_json(file);
  io::JsonReader reader(json, {file.string()});
  add_named(declared, reader, has_list);
}

void add_of_added_tokens(Declared& declared, const fs::path& file) {
  const Json json = io::read_json(file);
  for (const auto& [token, id] : io::JsonReader(json, {file.string()}).json().items())
    declared.add({.text = token, .id = checked_id(id, token, file.string()), .normalized = true}, file.string());
}

}  // namespace

Json declaration(const AddedToken& token) {
  Json json{{"content", token.text}};
  for (const auto& [key, flag] : kFlags) json[key] = token.*flag;
  return json;
}

std::vector<AddedToken> parse_added_tokens(const Json& list, const std::string& file) {
  static const Json none;
  std::vector<AddedToken> tokens;
  for (const Json& each : list) {
    tokens.push_back(token_of({each, {file}, "added_tokens."}));
    tokens.back().id = checked_id(each.contains("id") ? each["id"] : none, tokens.back().text, file);
  }
  return tokens;
}

WithAdded read_added_tokens(const fs::path& directory, const std::vector<AddedToken>& of_json,
                            const text::Vocabulary& vocabulary, Dim rows) {
  Declared declared(vocabulary);
  for (const AddedToken& token : of_json) declared.add(token, (directory / "tokenizer.json").string());
  const fs::path config = directory / "tokenizer_config.json", map = directory / "special_tokens_map.json",
                 numbers = directory / "added_tokens.json";
  bool has_list = false;
  const bool has_all = fs::exists(config) && add_of_tokenizer_config(declared, config, has_list);
  // As in transformers the older files count unless the newer one has a list of all added tokens.
  if (!has_all && fs::exists(map)) add_of_special_tokens_map(declared, map, has_list);
  if (!has_all && fs::exists(numbers)) add_of_added_tokens(declared, numbers);
  if (has_all && fs::exists(numbers)) declared.pass_over(numbers, config);
  declared.number_others();
  std::vector<AddedToken> tokens = declared.with_rows(directory, rows);

  std::vector<std::string> added;
  std::int32_t next = vocabulary.size();
  for (const AddedToken& token : tokens) {
    if (token.id < vocabulary.size()) continue;
    if (token.id != next)
      fail(Failure::model,
           "{}: expected added tokens with the ids that follow the vocabulary, from {} on, got {} for {}",
           directory.string(), vocabulary.size(), token.id, io::shown(token.text));
    added.push_back(token.text);
    ++next;
  }
  return {vocabulary.with_added(added), std::move(tokens)};
}

void declare_added_tokens(Json& tokenizer_config, const std::vector<AddedToken>& tokens) {
  if (tokens.empty()) return;
  Json ids = Json::object(), special = Json::array();
  for (const AddedToken& token : tokens) {
    io::append(ids, std::to_string(token.id), declaration(token));
    if (token.special) special.push_back(token.text);
  }
  tokenizer_config["added_tokens_decoder"] = std::move(ids);
  if (!special.empty()) tokenizer_config["additional_special_tokens"] = std::move(special);
}

}  // namespace bertrand::bert
