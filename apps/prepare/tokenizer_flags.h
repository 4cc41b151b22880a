// Which tokenizer a command takes: that of a vocabulary, or that of a model.
#pragma once
#include <filesystem>
#include <vector>

#include "bert/text/tokenizer.h"

namespace bertrand::prepare {

struct TokenizerFlags {
  std::filesystem::path vocab_file;  ///< --vocab-file; beside a model, for one that has no vocabulary
  bool cased = false;                ///< --cased, with vocab_file
  std::filesystem::path model;       ///< --model: a directory or a checkpoint, whose tokenizer is taken

  /// What is read, to be told from outputs.
  std::vector<std::filesystem::path> files() const;
};

struct TokenizerNeeds {
  bool specials = true;              ///< [CLS], [SEP] and [MASK] too, which a model always has
  bool keep_special_tokens = false;  ///< as text::TokenizerOptions has it
};

/// Throws Error(Failure::usage) if neither file is given, else as text::load_tokenizer() and bert::read_tokenizer().
text::Tokenizer load_tokenizer(const TokenizerFlags& flags, const TokenizerNeeds& needs = {});

}  // namespace bertrand::prepare
