#include "apps/training/model_source.h"

#include "bert/model/directory.h"
#include "bert/model/tokenizer_json.h"
#include "tensor/error.h"

namespace bertrand::training {
namespace {

/// Tables are padded to a multiple of up to this many rows; a greater difference is another model's vocabulary.
constexpr Dim kPadding = 128;

void check_size(const text::Vocabulary& vocabulary, const std::filesystem::path& file, const bert::Config& config) {
  const Dim spare = config.vocab_size - vocabulary.size();
  if (spare < 0 || spare >= kPadding)
    fail(Failure::model,
         "{}: vocabulary: expected {} tokens (vocab_size of config.json), got {}; hint: is it another model's?",
         file.string(), config.vocab_size, vocabulary.size());
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

bert::Config read_config(const std::filesystem::path& model_directory) {
  if (!std::filesystem::is_directory(model_directory))
    fail(Failure::model, "{}: expected a model directory, got none", model_directory.string());
  const std::filesystem::path google = model_directory / "bert_config.json";
  const bool has_only_google =
      !std::filesystem::exists(model_directory / "config.json") && std::filesystem::exists(google);
  return bert::Config::read(has_only_google ? google : model_directory / "config.json",
                            bert::Config::UnknownKeys::keep);
}

text::Tokenizer read_tokenizer(const std::filesystem::path& model_directory, const TokenizerFlags& flags,
                               const bert::Config& config) {
  if (!flags.vocab_file.empty()) {
    text::Vocabulary vocabulary = text::Vocabulary::load(flags.vocab_file, {.failure = Failure::input});
    check_size(vocabulary, flags.vocab_file, config);
    return text::Tokenizer(std::move(vocabulary), {.lower_case = !flags.cased});
  }
  const bert::TokenizerFacts facts = bert::read_tokenizer_facts(model_directory);
  if (const std::filesystem::path file = model_directory / "vocab.txt"; std::filesystem::exists(file)) {
    text::Vocabulary vocabulary = text::Vocabulary::load(file);
    check_size(vocabulary, file, config);
    const bool lower_case = facts.known ? facts.lower_case : !has_capitals(vocabulary);
    return text::Tokenizer(std::move(vocabulary), {.lower_case = lower_case});
  }
  const std::filesystem::path file = model_directory / "tokenizer.json";
  if (!std::filesystem::exists(file))
    fail(Failure::model,
         "{}: expected vocab.txt or tokenizer.json, got neither; hint: --vocab-file names one elsewhere",
         model_directory.string());
  bert::TokenizerJson json = bert::read_tokenizer_json(file);
  text::Vocabulary vocabulary = text::Vocabulary::parse(std::move(json.vocabulary), file.string());
  check_size(vocabulary, file, config);
  return text::Tokenizer(std::move(vocabulary), {.lower_case = facts.known ? facts.lower_case : json.lower_case});
}

}  // namespace bertrand::training
