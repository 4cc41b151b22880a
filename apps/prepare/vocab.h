// prepare vocab: a vocabulary from text.
#pragma once
#include <filesystem>
#include <vector>

#include "bert/text/vocabulary_trainer.h"

namespace bertrand::prepare {

struct VocabOptions {
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path output;
  bool cased = false;
  bool overwrite = false;  ///< replaces a file that is there
  text::VocabularyTrainerOptions trainer;
  int threads = 1;
};

/// Writes the vocabulary. Throws Error.
void write_vocab(const VocabOptions& options);

}  // namespace bertrand::prepare
