// tokenizer.json, in which newer Hugging Face directories keep what used to be vocab.txt, read and written.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bert/text/tokenizer.h"

namespace bertrand::bert {

struct TokenizerJson {
  std::string vocabulary;        ///< as vocab.txt would have it: the token of id i on line i, from 0
  bool lower_case = true;        ///< and accents stripped
  int max_chars_per_word = 100;  ///< longer words become [UNK]; 100 is the default of the package tokenizers
  std::vector<text::AddedToken> added = {};
};

/// Reads a WordPiece tokenizer of BERT's kind. Throws Error(Failure::model) naming `file` and the key if it is
/// another kind, splits or normalises text in another way than BERT, puts no [CLS] and [SEP] about it, or its ids are
/// not 0, 1, 2, ….
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& file);
TokenizerJson read_tokenizer_json(const std::filesystem::path& file);

/// tokenizer.json as transformers writes it, for a vocabulary with a token a line. None for one that it cannot hold:
/// with two blank lines, or without [UNK], [CLS] or [SEP].
std::optional<std::string> tokenizer_json_text(std::string_view vocabulary, const text::TokenizerOptions& options);

}  // namespace bertrand::bert
