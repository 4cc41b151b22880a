// What a directory of sentence-transformers says beside the weights: how its rows become the vector of a text.
#pragma once
#include <filesystem>
#include <optional>

#include "bert/inference/open.h"

namespace bertrand::inference {

/// How a text becomes a vector: the modules that modules.json lists after the encoder.
struct SentenceModules {
  std::optional<Pooling> pooling;  ///< of NUMBER_Pooling/config.json
  bool normalize = false;
};
/// Nothing if `directory` has no modules.json. Throws Error(Failure::model) naming the file if a module or its pooling
/// is none of those that are computed here.
SentenceModules read_sentence_modules(const std::filesystem::path& directory);

/// Tokens of a text, as sentence_bert_config.json has them; nothing if that does not say it. Throws
/// Error(Failure::model) if it has text lower-cased.
std::optional<int> read_sentence_length(const std::filesystem::path& directory);

}  // namespace bertrand::inference
