// What a directory of sentence-transformers says beside the weights: how its rows become the vector of a text.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "bert/inference/open.h"
#include "bert/text/tokenizer.h"

namespace bertrand::inference {

/// How a text becomes a vector: the modules that modules.json lists after the encoder.
struct SentenceModules {
  std::optional<Pooling> pooling;  ///< of NUMBER_Pooling/config.json
  bool normalize = false;
};
/// Nothing if `directory` has no modules.json. Throws Error(Failure::model) naming the file if a module or its pooling
/// is none of those that are computed here, if sentence-transformers would not compute them in this order, if it puts a
/// prompt before each text, or if it keeps fewer than all `hidden_size` numbers of a vector.
SentenceModules read_sentence_modules(const std::filesystem::path& directory, std::int64_t hidden_size);

/// Tokens of a text, at most `positions`: max_seq_length of sentence_bert_config.json, or as sentence-transformers 6
/// writes it, model_max_length of tokenizer_config.json if that is a number of positions; else all positions.
int read_sentence_length(const std::filesystem::path& directory, int positions);

/// Throws Error(Failure::model) if sentence_bert_config.json has texts lower-cased whose case the tokenizer keeps.
void require_lower_case(const std::filesystem::path& directory, const text::Tokenizer& tokenizer);

}  // namespace bertrand::inference
