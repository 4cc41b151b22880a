// The configuration and the tokenizer of a model, from whichever files its directory has.
#include "bert/directory/model_directory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "bert/directory/added_tokens.h"
#include "bert/directory/config_file.h"
#include "bert/directory/located.h"
#include "bert/directory/tokenizer_config.h"
#include "bert/directory/tokenizer_json.h"
#include "io/error.h"
#include "io/input_files.h"
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

/// Two files of a directory, of which somebody may have changed one.
void check_same(const text::Vocabulary& vocabulary, const fs::path& file, const text::Vocabulary& expected,
                const fs::path& expected_file) {
  constexpr const char* kHint = "the one that is wrong can be left out";
  for (std::int32_t id = 0; id < std::min(vocabulary.size(), expected.size()); ++id)
    if (vocabulary.token(id) != expected.token(id))
      fail(Failure::model, "{}:{}: vocabulary: expected \"{}\" as in {}, got \"{}\"; hint: {}", file.string(), id + 1,
           expected.token(id), expected_file.string(), vocabulary.token(id), kHint);
  if (vocabulary.size() != expected.size())
    fail(Failure::model, "{}: vocabulary: expected {} tokens as in {}, got {}; hint: {}", file.string(),
         expected.size(), expected_file.string(), vocabulary.size(), kHint);
}

bool are_same(const text::Vocabulary& a, const text::Vocabulary& b) {
  if (a.size() != b.size()) return false;
  for (std::int32_t id = 0; id < a.size(); ++id)
    if (a.token(id) != b.token(id)) return false;
  return true;
}

/// Beside a vocab.txt, a tokenizer.json of a kind that cannot be read is no reason to refuse the model.
std::optional<TokenizerJson> read_json(const fs::path& file, bool may_be_of_another_kind) {
  if (!fs::exists(file)) return std::nullopt;
  try {
    return read_tokenizer_json(file);
  } catch (const Error& error) {
    if (!may_be_of_another_kind || error.failure() != Failure::model) throw;
    io::warn("{}; vocab.txt is used", error.what());
    return std::nullopt;
  }
}

/// Somebody may not know that the model was trained with words of its own. What cannot be read of them is why a person
/// names others.
void warn_of_own_words(const fs::path& model_directory, const text::Vocabulary& given, const fs::path& file, Dim rows) {
  const fs::path lines = model_directory / "vocab.txt", json = model_directory / "tokenizer.json";
  const bool has_lines = fs::exists(lines);
  if (!has_lines && !fs::exists(json)) return;
  const fs::path& own = has_lines ? lines : json;
  try {
    const std::string words =
        has_lines ? io::read_small_file(lines, "vocabulary") : read_tokenizer_json(json).vocabulary;
    if (are_same(text::Vocabulary::parse(words, own.string(), {.rows = rows}), given)) return;
  } catch (const Error&) {
    return;
  }
  io::warn("{}: used in place of {}, which has other words", file.string(), own.string());
}

/// What a directory says of its tokenizer, in up to four files.
struct DirectoryTokenizer {
  std::optional<text::Vocabulary> vocabulary;
  std::optional<bool> lower_case;
  std::optional<int> max_chars_per_word;
  std::vector<text::AddedToken> added = {};
};

DirectoryTokenizer tokenizer_of(const fs::path& model_directory, const Config& config) {
  const fs::path lines = model_directory / "vocab.txt", json = model_directory / "tokenizer.json";
  const TokenizerConfig own = read_tokenizer_config(model_directory);
  const io::JsonSource source{config_file(model_directory).string()};
  const io::Json others = io::parse_json(config.others, source);
  io::JsonReader config_json(others, source);
  if (!own.names_class) names_tokenizer_class(config_json);  // there transformers looks next
  if (!own.gives_token_types && config.type_vocab_size > 1)
    io::warn(
        "{}: it has no token types, so that in transformers both texts of a pair have type 0; here the second has 1",
        (model_directory / "tokenizer_config.json").string());
  DirectoryTokenizer found{
      .vocabulary = {}, .lower_case = own.lower_case, .max_chars_per_word = own.max_chars_per_word};
  const bool has_lines = fs::exists(lines);
  if (has_lines)  // no pipe, for which a program would wait
    found.vocabulary =
        text::Vocabulary::parse(io::read_small_file(lines, "vocabulary"), lines.string(), {.rows = config.vocab_size});
  if (const std::optional<TokenizerJson> whole = read_json(json, has_lines)) {
    const text::Vocabulary vocabulary =
        text::Vocabulary::parse(whole->vocabulary, json.string(), {.rows = config.vocab_size});
    if (has_lines) check_same(*found.vocabulary, lines, vocabulary, json);
    else found.vocabulary = vocabulary;
    // As in transformers, tokenizer_config.json has the last word.
    if (!found.lower_case) found.lower_case = whole->lower_case;
    if (!found.max_chars_per_word) found.max_chars_per_word = whole->max_chars_per_word;
    found.added = whole->added;
  }
  if (!found.vocabulary) return found;
  if (!found.lower_case) found.lower_case = !found.vocabulary->has_capitals();
  WithAdded all = read_added_tokens(model_directory, found.added, *found.vocabulary, config.vocab_size);
  check_size(all.vocabulary, has_lines ? lines : json, config.vocab_size, config_file(model_directory));
  found.vocabulary = std::move(all.vocabulary);
  found.added = std::move(all.tokens);
  return found;
}

/// A pooling of sentence-transformers has a config.json too.
bool has_weights(const fs::path& directory) {
  try {
    weight_files(directory);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Names the newest model that lies deeper: a checkpoint of a run that was stopped, a run of a sweep, or a snapshot in
/// a cache of Hugging Face's hub.
std::string hint_of_models_in(const fs::path& directory) {
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> models;
  for (const fs::path& within : {directory, directory / "snapshots"})
    for (const auto& entry : fs::directory_iterator(within, ignored)) {
      const fs::path config = entry.path() / "config.json";
      const bool half_written = entry.path().filename().string().find(".tmp-") != std::string::npos;
      if (!half_written && fs::is_regular_file(config, ignored) && has_weights(entry.path()))
        models.emplace_back(fs::last_write_time(config, ignored), entry.path());
    }
  if (models.empty()) return "";
  const std::size_t more = models.size() - 1;
  return fmt::format("; hint: {} has one{}", std::ranges::max(models).second.string(),
                     more == 0 ? "" : fmt::format(", and {} more beside it", more));
}

}  // namespace

void check_size(const text::Vocabulary& vocabulary, const fs::path& file, Dim rows, const fs::path& config) {
  if (!fits(vocabulary.size(), rows))
    fail(Failure::model, "{}: vocabulary: expected {} tokens (vocab_size of {}), got {}; hint: is it another model's?",
         file.string(), rows, config.string(), vocabulary.size());
  if (vocabulary.size() < rows)
    io::warn("{}: {} tokens for {} rows of word embeddings: the rest is taken for padding", file.string(),
             vocabulary.size(), rows);
}

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
         "its bert_config.json, got no configuration in {}{}",
         model.string(), file.parent_path().string(), hint_of_models_in(file.parent_path()));
  return read_config_file(file, UnknownKeys::keep);
}

void require_room_for_text(const Config& config, const fs::path& model) {
  if (config.max_position_embeddings < 3)
    fail(Failure::model, "{}: max_position_embeddings: expected at least 3 to read a text, got {}",
         config_file(model).string(), config.max_position_embeddings);
}

void require_pairs(const Config& config, const std::string& where, const char* what) {
  if (config.type_vocab_size < 2)
    fail(Failure::model, "{}: type_vocab_size: expected 2 for {}, got {}", where, what, config.type_vocab_size);
}

text::Tokenizer read_tokenizer(const fs::path& model, const TokenizerFlags& flags, const Config& config) {
  const fs::path model_directory = directory_of(model);
  if (flags.cased && flags.vocab_file.empty())
    fail(Failure::usage, "--cased: expected with --vocab-file, got a model directory that says it itself");
  if (!flags.vocab_file.empty()) {
    const text::Vocabulary vocabulary =
        text::Vocabulary::load(flags.vocab_file, {.failure = Failure::input, .rows = config.vocab_size});
    const bool lower_case = text::lower_cases(vocabulary, flags.cased, flags.vocab_file.string());
    WithAdded all = read_added_tokens(model_directory, {}, vocabulary, config.vocab_size);
    check_size(all.vocabulary, flags.vocab_file, config.vocab_size, config_file(model_directory));
    warn_of_own_words(model_directory, vocabulary, flags.vocab_file, config.vocab_size);
    return text::Tokenizer(std::move(all.vocabulary),
                           {.lower_case = lower_case, .added_tokens = std::move(all.tokens)});
  }
  DirectoryTokenizer own = tokenizer_of(model_directory, config);
  if (!own.vocabulary)
    fail(Failure::model,
         "{}: expected vocab.txt or tokenizer.json, got neither; hint: --vocab-file names one elsewhere",
         model_directory.string());
  return text::Tokenizer(
      std::move(*own.vocabulary),
      {.lower_case = own.lower_case.value(),
       .max_chars_per_word = own.max_chars_per_word.value_or(text::TokenizerOptions::kGooglesMaxChars),
       .added_tokens = std::move(own.added)});
}

}  // namespace bertrand::bert
