// prepare corpus: text to a tokenised corpus, which pretrain maps.
#pragma once
#include <filesystem>
#include <vector>

#include "apps/prepare/tokenizer_flags.h"

namespace bertrand::prepare {

struct CorpusOptions {
  TokenizerFlags tokenizer;
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path output;
  int shards = 1;
  int threads = 1;
};

/// Writes the directory. Throws Error.
void write_corpus(const CorpusOptions& options);

}  // namespace bertrand::prepare
