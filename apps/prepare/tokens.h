// prepare tokens: a line of ids for every line of text.
#pragma once
#include <filesystem>

#include "apps/prepare/tokenizer_flags.h"

namespace bertrand::prepare {

struct TokensOptions {
  TokenizerFlags tokenizer;
  bool with_special_tokens = false;
  int threads = 1;
  std::filesystem::path input;  ///< empty: standard input
};

/// Writes to standard output. Throws Error.
void write_tokens(const TokensOptions& options);

}  // namespace bertrand::prepare
