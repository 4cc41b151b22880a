// Added tokens as the files of a directory declare them.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "bert/text/added_tokens.h"
#include "bert/text/vocabulary.h"
#include "io/json.h"
#include "tensor/shape.h"

namespace bertrand::bert {

/// Its content and flags, as tokenizer.json and tokenizer_config.json have them.
io::Json declaration(const text::AddedToken& token);

/// The list added_tokens of tokenizer.json, which is `file` in the messages of Error(Failure::model).
std::vector<text::AddedToken> parse_added_tokens(const io::Json& list, const std::string& file);

/// A vocabulary with the tokens that were added behind it.
struct WithAdded {
  text::Vocabulary vocabulary;
  std::vector<text::AddedToken> tokens;  ///< all that are declared, but [PAD], [UNK], [CLS], [SEP] and [MASK]
};
/// `of_json` and those of tokenizer_config.json and, unless that has added_tokens_decoder, of special_tokens_map.json
/// and added_tokens.json, each with its id; those that no file numbers have the next ones behind all others, in the
/// order of their declaration, as in transformers. What has none of the `rows` of the word embeddings is left out, with
/// a warning. Throws Error(Failure::model) unless each is one of the vocabulary under its own id, or the ids are those
/// that follow.
WithAdded read_added_tokens(const std::filesystem::path& directory, const std::vector<text::AddedToken>& of_json,
                            const text::Vocabulary& vocabulary, Dim rows);

/// Writes them into tokenizer_config.json as transformers reads them: added_tokens_decoder, and the names of those that
/// are special.
void declare_added_tokens(io::Json& tokenizer_config, const std::vector<text::AddedToken>& tokens);

}  // namespace bertrand::bert
