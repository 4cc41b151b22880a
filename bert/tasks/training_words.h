// A file of words to train on, which may be larger than memory.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bert/tasks/token_data.h"

namespace bertrand::tasks {

/// Reads a file of words twice: what labels there are, then what is learnt of each sentence. None of them is held.
class TrainingWords {
 public:
  /// Reads and checks files.train. Throws as walk_sentences, and keeps bad lines in `bad` as that does. All arguments
  /// must outlive it.
  TrainingWords(const TokenOptions& options, const TaskFiles& files, std::vector<std::string>* bad);

  /// Throws Failure::input if there are fewer than two.
  LabelSet labels() const;
  /// The sentences encoded, each token with its target. Those that files.held_out marks go to `taken`. To be called
  /// once. Throws Failure::input if the tokenizer leaves nothing or the file is not what it was.
  TrainedWords encode(const LabelSet& labels, SentenceEncoder& encoder, SentenceList& taken) const;

 private:
  const TokenOptions& options_;
  const TaskFiles& files_;
  std::vector<std::string>* bad_;
  LabelNames names_;
  std::int64_t sentences_ = 0, first_line_ = 0;  // the line of the first word
  IllegalLabels illegal_;
  text::InvalidBytes invalid_;
  bool only_numbers_ = true;  // so far
};

}  // namespace bertrand::tasks
