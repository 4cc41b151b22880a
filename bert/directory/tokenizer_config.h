// tokenizer_config.json, which says what a vocabulary does not.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "bert/text/tokenizer.h"
#include "io/json.h"
#include "tensor/shape.h"

namespace bertrand::bert {

/// What tokenizer_config.json of a directory says, and special_tokens_map.json beside it; nothing if there is neither.
struct TokenizerConfig {
  std::optional<bool> lower_case;
  std::optional<int> max_chars_per_word;  ///< as tokenizer_config_text() writes it
  bool names_class = false;               ///< of transformers
  bool gives_token_types = true;          ///< 0 and 1 for the texts of a pair
};
/// Throws Error(Failure::model) if it says anything that BERT's own tokenizer does not do.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory);

/// model_max_length of tokenizer_config.json in a directory, if it is a number of tokens that a model of so many
/// positions reads: transformers writes 1e30 for none.
std::optional<Dim> read_max_length(const std::filesystem::path& directory, Dim positions);

/// Whether a file of a model names a class of tokenizers. Throws Error(Failure::model) if that is not BERT's own, or
/// code of the model's.
bool names_tokenizer_class(io::JsonReader& file);

/// tokenizer_config.json as transformers reads it, for texts of so many tokens.
std::string tokenizer_config_text(const text::TokenizerOptions& options, Dim max_length);

}  // namespace bertrand::bert
