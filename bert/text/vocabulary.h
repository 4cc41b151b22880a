// The word pieces that a model knows, numbered by their line in vocab.txt.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/error.h"

namespace bertrand::text {

/// Python's str.strip() of valid UTF-8: without the white space at both ends.
std::string_view strip(std::string_view text);

struct VocabularyOptions {
  Failure failure = Failure::model;  ///< what a bad vocabulary is: part of a model directory, or input named by a flag
  bool require_specials = true;      ///< [UNK] [CLS] [SEP] [MASK] must exist; otherwise only [UNK] must
  /// Of the model's word embeddings. Blank lines at the end that have none are left out, as no text has their token.
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
};

/// A vocabulary in the form of Google's vocab.txt: one token a line, its id is the number of the line from 0.
/// As Google's load_vocab, lines end at \n, are stripped of Python's white space, and invalid UTF-8 is dropped; blank
/// lines keep their number and stand for the token "". A value handle: copies share the same contents.
class Vocabulary {
 public:
  /// Reads a file or a pipe, of at most io::kMostSmallFile bytes. Throws Error(options.failure), naming file and line:
  /// too long, empty, a token twice, no special tokens; if it is not there or cannot be read, as io::ByteSource does.
  static Vocabulary load(const std::filesystem::path& path, const VocabularyOptions& options = {});

  /// The same from the bytes of a file; `name` stands for the file in messages.
  static Vocabulary parse(std::string bytes, const std::string& name, const VocabularyOptions& options = {});

  /// This one and, with the ids that follow, tokens that other files declare: they are no pieces of words, and neither
  /// text() nor distinct_ids() has them. Each must be a new one.
  Vocabulary with_added(const std::vector<std::string>& tokens) const;

  /// The id of a token, -1 if the vocabulary does not have it. A token on several lines (only "" can be) has the last.
  std::int32_t find(std::string_view token) const;
  /// The id of a token; throws Error(Failure::input) if the vocabulary does not have it.
  std::int32_t id(std::string_view token) const;
  /// The token of an id; throws Error(Failure::input) unless 0 <= id < size().
  std::string_view token(std::int32_t id) const;

  /// Number of lines and of added tokens, which is the number of rows of the model's word embedding.
  std::int32_t size() const;

  std::int32_t unk_id() const;   ///< [UNK]
  std::int32_t cls_id() const;   ///< [CLS], -1 if absent
  std::int32_t sep_id() const;   ///< [SEP], -1 if absent
  std::int32_t mask_id() const;  ///< [MASK], -1 if absent

  /// The ids in the order of Python's list(vocab.keys()), from which Google's masking draws its random words: a token
  /// that stands on several lines is there once, at its first place and with its last id.
  const std::vector<std::int32_t>& distinct_ids() const;

  /// Whether a word of it has a capital. Tokens that are no word do not count: [CLS], and <S> and <T> of the uncased
  /// Chinese vocabulary.
  bool has_capitals() const;

  /// The bytes of the file, so that a copy saved with a model is the same file. Only what another program would read
  /// otherwise is written as it was read: no byte order mark, and a token that a line has white space or invalid bytes
  /// about stands alone.
  const std::string& text() const;

 private:
  struct Contents;
  explicit Vocabulary(std::shared_ptr<const Contents> contents);
  std::shared_ptr<const Contents> contents_;
};

}  // namespace bertrand::text
