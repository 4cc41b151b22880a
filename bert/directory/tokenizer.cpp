// The configuration and the tokenizer of a model, from whichever files its directory has.
#include "bert/directory/model_directory.h"

#include <algorithm>
#include <optional>

#include "bert/directory/config_file.h"
#include "bert/directory/located.h"
#include "bert/directory/tokenizer_config.h"
#include "bert/directory/tokenizer_json.h"
#include "io/error.h"
#include "io/say.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;

/// Whether a table of word embeddings for `tokens` has this many rows: as many, or padded to a multiple of a power of
/// two that processors like.
bool fits(Dim tokens, Dim rows) {
  if (tokens == rows) return true;
  for (const Dim multiple : {8, 16, 32, 64, 128})
    if (rows % multiple == 0 && tokens < rows && rows - tokens < multiple) return true;
  return false;
}

/// Those of a directory. A text that has one of them is not read as its writer meant it.
AddedTokens added_tokens_of(const fs::path& model_directory, const text::Vocabulary& vocabulary) {
  AddedTokens added = read_added_tokens(model_directory, vocabulary);
  if (!added.tokens.empty())
    io::warn("{}: no text becomes {} here: it is read piece by piece", (model_directory / "added_tokens.json").string(),
             added.tokens.size() == 1 ? added.tokens.front()
                                      : fmt::format("{} or {} more", added.tokens.front(), added.tokens.size() - 1));
  return added;
}

/// A line that is missing would shift every later id.
void check_size(const text::Vocabulary& vocabulary, const AddedTokens& added, const fs::path& file, Dim rows,
                const fs::path& config) {
  if (vocabulary.size() < rows && fits(vocabulary.size(), rows))
    io::warn("{}: {} tokens for {} rows of word embeddings: the last {} are taken for padding", file.string(),
             vocabulary.size(), rows, rows - vocabulary.size());
  if (!fits(vocabulary.size(), rows) && vocabulary.size() + std::ssize(added.tokens) != rows)
    fail(Failure::model, "{}: vocabulary: expected {} tokens (vocab_size of {}), got {}; hint: is it another model's?",
         file.string(), rows, config.string(), vocabulary.size());
}

void check_same(const text::Vocabulary& vocabulary, const fs::path& file, const text::Vocabulary& expected,
                const fs::path& expected_file) {
  for (std::int32_t id = 0; id < std::min(vocabulary.size(), expected.size()); ++id)
    if (vocabulary.token(id) != expected.token(id))
      fail(Failure::model, "{}:{}: vocabulary: expected \"{}\" as in {}, got \"{}\"", file.string(), id + 1,
           expected.token(id), expected_file.string(), vocabulary.token(id));
  if (vocabulary.size() != expected.size())
    fail(Failure::model, "{}: vocabulary: expected {} tokens as in {}, got {}", file.string(), expected.size(),
         expected_file.string(), vocabulary.size());
}

/// Beside a vocab.txt, a tokenizer.json of a kind that cannot be read is no reason to refuse the model.
std::optional<TokenizerJson> read_json(const fs::path& file, bool may_be_of_another_kind) {
  if (!fs::exists(file)) return std::nullopt;
  try {
    return read_tokenizer_json(file);
  } catch (const Error& error) {
    if (!may_be_of_another_kind) throw;
    io::warn("{}; vocab.txt is used", error.what());
    return std::nullopt;
  }
}

/// What a directory says of its tokenizer, in up to four files.
struct DirectoryTokenizer {
  std::optional<text::Vocabulary> vocabulary;
  std::optional<bool> lower_case;
  std::optional<int> max_chars_per_word;
  AddedTokens added = {};
};

DirectoryTokenizer tokenizer_of(const fs::path& model_directory, const Config& config) {
  const fs::path lines = model_directory / "vocab.txt", json = model_directory / "tokenizer.json";
  const TokenizerConfig own = read_tokenizer_config(model_directory);
  const io::JsonSource source{config_file(model_directory).string()};
  const io::Json others = io::parse_json(config.others, source);
  io::JsonReader config_json(others, source);
  if (!own.names_class) names_tokenizer_class(config_json);  // there transformers looks next
  DirectoryTokenizer found{
      .vocabulary = {}, .lower_case = own.lower_case, .max_chars_per_word = own.max_chars_per_word};
  const bool has_lines = fs::exists(lines);
  if (has_lines) found.vocabulary = text::Vocabulary::load(lines);
  if (const std::optional<TokenizerJson> whole = read_json(json, has_lines)) {
    const text::Vocabulary vocabulary = text::Vocabulary::parse(whole->vocabulary, json.string());
    if (has_lines) check_same(*found.vocabulary, lines, vocabulary, json);
    else found.vocabulary = vocabulary;
    // As in transformers, tokenizer_config.json has the last word.
    if (!found.lower_case) found.lower_case = whole->lower_case;
    if (!found.max_chars_per_word) found.max_chars_per_word = whole->max_chars_per_word;
  }
  if (!found.vocabulary) return found;
  found.added = added_tokens_of(model_directory, *found.vocabulary);
  check_size(*found.vocabulary, found.added, has_lines ? lines : json, config.vocab_size, config_file(model_directory));
  return found;
}

}  // namespace

fs::path config_file(const fs::path& model) {
  const fs::path directory = directory_of(model);
  const fs::path own = directory / "config.json", google = directory / "bert_config.json";
  return !fs::exists(own) && fs::exists(google) ? google : own;
}

Config read_config(const fs::path& model) {
  require_model(model);
  const fs::path file = config_file(model);
  if (!fs::is_regular_file(file))
    fail(Failure::model,
         "{}: expected a model directory (config.json, model.safetensors, vocab.txt) or a TensorFlow checkpoint with "
         "its bert_config.json, got no configuration in {}",
         model.string(), file.parent_path().string());
  return read_config_file(file, UnknownKeys::keep);
}

text::Tokenizer read_tokenizer(const fs::path& model, const TokenizerFlags& flags, const Config& config) {
  const fs::path model_directory = directory_of(model);
  if (flags.cased && flags.vocab_file.empty())
    fail(Failure::usage, "--cased: expected with --vocab-file, got a model directory that says it itself");
  if (!flags.vocab_file.empty()) {
    text::Vocabulary vocabulary = text::Vocabulary::load(flags.vocab_file, {.failure = Failure::input});
    const AddedTokens added = added_tokens_of(model_directory, vocabulary);
    check_size(vocabulary, added, flags.vocab_file, config.vocab_size, config_file(model_directory));
    const bool lower_case = text::lower_cases(vocabulary, flags.cased, flags.vocab_file.string());
    return text::Tokenizer(std::move(vocabulary), {.lower_case = lower_case, .added_tokens = added.text});
  }
  DirectoryTokenizer own = tokenizer_of(model_directory, config);
  if (!own.vocabulary)
    fail(Failure::model,
         "{}: expected vocab.txt or tokenizer.json, got neither; hint: --vocab-file names one elsewhere",
         model_directory.string());
  const bool lower_case = own.lower_case.value_or(!own.vocabulary->has_capitals());
  return text::Tokenizer(
      std::move(*own.vocabulary),
      {.lower_case = lower_case,
       .max_chars_per_word = own.max_chars_per_word.value_or(text::TokenizerOptions::kGooglesMaxChars),
       .added_tokens = std::move(own.added.text)});
}

}  // namespace bertrand::bert
