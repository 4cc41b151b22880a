#include "apps/training/model_source.h"

#include <algorithm>
#include <optional>

#include "bert/model/directory.h"
#include "bert/model/tokenizer_json.h"
#include "tensor/error.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

/// Google's name where the directory has only that.
fs::path config_file(const fs::path& model_directory) {
  const fs::path own = model_directory / "config.json", google = model_directory / "bert_config.json";
  return !fs::exists(own) && fs::exists(google) ? google : own;
}

/// Whether a table of word embeddings for `tokens` has this many rows: as many, or padded to a multiple of a power of
/// two that processors like.
bool fits(Dim tokens, Dim rows) {
  if (tokens == rows) return true;
  for (const Dim multiple : {8, 16, 32, 64, 128})
    if (rows % multiple == 0 && tokens < rows && rows - tokens < multiple) return true;
  return false;
}

/// A line that is missing would shift every later id.
void check_size(const text::Vocabulary& vocabulary, const fs::path& file, const bert::Config& config,
                const fs::path& model_directory) {
  if (!fits(vocabulary.size(), config.vocab_size))
    fail(Failure::model, "{}: vocabulary: expected {} tokens (vocab_size of {}), got {}; hint: is it another model's?",
         file.string(), config.vocab_size, config_file(model_directory).string(), vocabulary.size());
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

/// What a directory says of its tokenizer, in up to three files that must agree.
struct DirectoryTokenizer {
  std::optional<text::Vocabulary> vocabulary;
  std::optional<bool> lower_case;
};

DirectoryTokenizer tokenizer_of(const fs::path& model_directory, const bert::Config& config) {
  const fs::path lines = model_directory / "vocab.txt", json = model_directory / "tokenizer.json";
  DirectoryTokenizer found;
  if (const bert::TokenizerFacts facts = bert::read_tokenizer_facts(model_directory); facts.known)
    found.lower_case = facts.lower_case;
  const bool has_lines = fs::exists(lines);
  if (has_lines) found.vocabulary = text::Vocabulary::load(lines);
  if (fs::exists(json)) {
    bert::TokenizerJson whole = bert::read_tokenizer_json(json);
    const text::Vocabulary vocabulary = text::Vocabulary::parse(std::move(whole.vocabulary), json.string());
    if (has_lines) check_same(*found.vocabulary, lines, vocabulary, json);
    if (found.lower_case.value_or(whole.lower_case) != whole.lower_case)
      fail(Failure::model, "{}: do_lower_case: expected {} as normalizer.lowercase of {}, got {}",
           (model_directory / "tokenizer_config.json").string(), whole.lower_case, json.string(), *found.lower_case);
    if (!has_lines) found.vocabulary = vocabulary;
    found.lower_case = whole.lower_case;
  }
  if (found.vocabulary) check_size(*found.vocabulary, has_lines ? lines : json, config, model_directory);
  return found;
}

bool has_capitals(const text::Vocabulary& vocabulary) {
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (token.starts_with('[')) continue;  // [CLS], [unused1]
    for (const char c : token)
      if ('A' <= c && c <= 'Z') return true;
  }
  return false;
}

}  // namespace

bert::Config read_config(const fs::path& model_directory) {
  if (!fs::is_directory(model_directory))
    fail(Failure::model, "{}: expected a model directory, got none", model_directory.string());
  return bert::Config::read(config_file(model_directory), bert::Config::UnknownKeys::keep);
}

text::Tokenizer read_tokenizer(const fs::path& model_directory, const TokenizerFlags& flags,
                               const bert::Config& config) {
  if (!flags.vocab_file.empty()) {
    text::Vocabulary vocabulary = text::Vocabulary::load(flags.vocab_file, {.failure = Failure::input});
    check_size(vocabulary, flags.vocab_file, config, model_directory);
    return text::Tokenizer(std::move(vocabulary), {.lower_case = !flags.cased});
  }
  DirectoryTokenizer own = tokenizer_of(model_directory, config);
  if (!own.vocabulary)
    fail(Failure::model,
         "{}: expected vocab.txt or tokenizer.json, got neither; hint: --vocab-file names one elsewhere",
         model_directory.string());
  const bool lower_case = own.lower_case.value_or(!has_capitals(*own.vocabulary));
  return text::Tokenizer(std::move(*own.vocabulary), {.lower_case = lower_case});
}

}  // namespace bertrand::training
