// tokenizer.json, in which newer Hugging Face directories keep what used to be vocab.txt.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "tensor/shape.h"

namespace bertrand::bert {

struct TokenizerJson {
  std::string vocabulary;  ///< as vocab.txt would have it: the token of id i on line i, from 0
  bool lower_case = true;  ///< and accents stripped
};

/// Reads a WordPiece tokenizer of BERT's kind. Throws Error(Failure::model) naming `file` and the key where it is
/// another kind, splits or normalises text in another way than BERT, or its ids are not 0, 1, 2, ….
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& file);
TokenizerJson read_tokenizer_json(const std::filesystem::path& file);

/// How many rows of the word embeddings were added behind the vocabulary: the tokens of added_tokens.json, if there is
/// one.
Dim count_added_tokens(const std::filesystem::path& directory);

}  // namespace bertrand::bert
