// From text to the ids that a model reads: Google's BasicTokenizer followed by WordPiece.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/text/added_tokens.h"
#include "bert/text/utf8.h"
#include "bert/text/vocabulary.h"

namespace bertrand::text {

class Pieces;

/// What BERT itself means something by.
constexpr auto kSpecialTokens = std::to_array<std::string_view>({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"});

struct TokenizerOptions {
  bool lower_case = true;  ///< lower-case and strip accents, for "uncased" vocabularies
  /// Literal [MASK], [SEP], … in a text become their ids, as in Hugging Face's tokenizers. A model's commands leave it
  /// off, as Google's code: a text from elsewhere could otherwise end a segment or ask for a prediction.
  bool keep_special_tokens = false;
  static constexpr int kGooglesMaxChars = 200;
  int max_chars_per_word = kGooglesMaxChars;  ///< longer words (in code points) become [UNK]
  /// Of the vocabulary, but whole wherever a text has them; not [MASK], [SEP], …, which the flag above keeps.
  std::vector<AddedToken> added_tokens = {};
};

/// Google's FullTokenizer (google-research/bert, tokenization.py) with the Unicode 14.0 tables of CPython 3.11: without
/// added tokens equal to it on every text, whatever bytes it holds. Immutable, so threads may share one; see
/// CachingTokenizer for the fast way.
class Tokenizer {
 public:
  explicit Tokenizer(Vocabulary vocabulary, const TokenizerOptions& options = {});
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// The ids of a text, without [CLS] and [SEP]. `dropped`, if given, says what was no UTF-8.
  std::vector<std::int32_t> encode(std::string_view text, DroppedBytes* dropped = nullptr) const;
  /// The words before they are cut into pieces: BasicTokenizer alone.
  std::vector<std::string> words(std::string_view text) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const TokenizerOptions& options() const { return options_; }

 private:
  friend class CachingTokenizer;
  Vocabulary vocabulary_;
  TokenizerOptions options_;
  AddedTokenFinder whole_;  // added tokens, and with keep_special_tokens those
  std::unique_ptr<const Pieces> pieces_;
};

/// Whether text is lower-cased for the vocabulary of a file that comes without a model: unless `cased`. Warns if it has
/// words that no such text becomes.
bool lower_cases(const Vocabulary& vocabulary, bool cased, const std::string& file);

/// The tokenizer of such a file, those of --vocab-file and --cased. Throws as Vocabulary::load().
Tokenizer load_tokenizer(const std::filesystem::path& vocab_file, bool cased,
                         const VocabularyOptions& of_vocabulary = {.failure = Failure::input},
                         TokenizerOptions options = {});

/// A tokenizer with buffers and a cache of words, for many texts: no allocation per text once warm. Not for sharing:
/// one for each thread. The tokenizer must outlive it.
class CachingTokenizer {
 public:
  explicit CachingTokenizer(const Tokenizer& tokenizer);
  ~CachingTokenizer();
  CachingTokenizer(CachingTokenizer&&) noexcept;

  /// The same ids as tokenizer.encode(text). The span is valid until the next call.
  std::span<const std::int32_t> encode(std::string_view text);
  /// The part of `text`, which is valid UTF-8, that each id of encode(text) stands for. Parts of neighbours may share a
  /// code point that is several characters, as a syllable of Hangul in lower case.
  std::vector<std::string_view> places(std::string_view text);
  /// What was no UTF-8 in the last text.
  const DroppedBytes& dropped() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bertrand::text
