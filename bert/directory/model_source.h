// What a model directory says before its weights are read: the model's shape and its tokenizer.
#pragma once
#include <filesystem>

#include "bert/network/config.h"
#include "bert/text/tokenizer.h"

namespace bertrand::bert {

/// config.json, or Google's bert_config.json if there is none. Throws Error(Failure::model).
bert::Config read_config(const std::filesystem::path& model_directory);

struct TokenizerFlags {
  std::filesystem::path vocab_file;  ///< --vocab-file; empty: the directory has its own
  bool cased = false;                ///< --cased, with vocab_file
};

/// The tokenizer of the directory, in vocab.txt or tokenizer.json, or the one that the flags give it. A directory that
/// does not say whether it is cased is so if its vocabulary has words with capital letters. Throws
/// Error(Failure::model) if there is no vocabulary, one that does not fit the model's word embeddings, or files that
/// disagree, and Error(Failure::input) for a bad --vocab-file.
text::Tokenizer read_tokenizer(const std::filesystem::path& model_directory, const TokenizerFlags& flags,
                               const bert::Config& config);

}  // namespace bertrand::bert
