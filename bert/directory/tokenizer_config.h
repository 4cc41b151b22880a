// tokenizer_config.json, which says what a vocabulary does not.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "bert/text/tokenizer.h"
#include "io/json.h"
#include "tensor/shape.h"

namespace bertrand::bert {

/// Whether text is to be lower-cased, if tokenizer_config.json of a directory says so. Throws Error(Failure::model)
/// if it says anything that BERT's own tokenizer does not do.
std::optional<bool> read_lower_case(const std::filesystem::path& directory);

/// Throws Error(Failure::model) if a directory says that its text is not read by BERT's own tokenizer: in
/// tokenizer_config.json, or if that names no class in config.json, as transformers looks for it.
void refuse_other_tokenizer(const std::filesystem::path& directory, io::JsonReader config);

/// The most characters of a word, if tokenizer_config.json of a directory says them, as tokenizer_config_text() does.
std::optional<int> read_max_chars(const std::filesystem::path& directory);

/// tokenizer_config.json as transformers reads it, for a model of so many positions.
std::string tokenizer_config_text(const text::TokenizerOptions& options, Dim positions);

}  // namespace bertrand::bert
