// tokenizer.json, in which newer Hugging Face directories keep what used to be vocab.txt.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bert/text/added_tokens.h"

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

}  // namespace bertrand::bert
