// tokenizer_config.json, which says what a vocabulary does not.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "bert/text/tokenizer.h"
#include "io/json.h"
#include "tensor/shape.h"

namespace bertrand::bert {

/// What tokenizer_config.json of a directory says; nothing if there is none.
struct TokenizerConfig {
  std::optional<bool> lower_case;
  std::optional<int> max_chars_per_word;  ///< as tokenizer_config_text() writes it
  bool names_class = false;               ///< of transformers
};
/// Throws Error(Failure::model) if it says anything that BERT's own tokenizer does not do.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory);

/// Whether a file of a model names a class of tokenizers. Throws Error(Failure::model) if that is not BERT's own.
bool names_tokenizer_class(io::JsonReader& file);

/// tokenizer_config.json as transformers reads it, for a model of so many positions.
std::string tokenizer_config_text(const text::TokenizerOptions& options, Dim positions);

}  // namespace bertrand::bert
