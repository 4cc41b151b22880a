// The files of a run that labels words: read, cut into windows, and their labels understood.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bert/tasks/labels.h"
#include "bert/tasks/task_data.h"
#include "bert/tasks/token_file.h"
#include "bert/tasks/token_scores.h"
#include "bert/tasks/token_windows.h"

namespace bertrand::tasks {

struct TokenOptions {
  TokenTask task = TokenTask::tokens;
  TokenColumns columns;
  bool label_all_pieces = false;  ///< a word's other pieces get its label too, I-X for B-X if there is such a label
  WindowOptions windows;
};

/// One file.
struct TokenSplit {
  TokenFile file;  ///< of the training file only the name and the sentences' bounds are kept
  EncodedSentences encoded;
  std::vector<std::int32_t> labels;   ///< [words]; empty for a file to predict
  std::vector<std::int32_t> targets;  ///< [tokens of the windows]: the label that counts there, or −1; empty as labels

  /// Words of which the tokenizer leaves nothing.
  std::size_t without_pieces() const;
  /// On the host, beside the windows.
  std::size_t bytes() const;
};

struct TokenData {
  TokenTask task = TokenTask::tokens;
  LabelSet labels;
  std::optional<CommonLabel> common;  ///< of the training file
  std::optional<TokenSplit> train, evaluation, prediction;
  std::vector<std::string> bad_rows = {};  ///< what is wrong with lines of the files, if TaskFiles::on_bad keeps them

  std::size_t bytes() const;  ///< of all splits
  /// Lines for people about bytes that were no UTF-8; "" if there is nothing to say.
  std::string warnings() const;
  /// The same about windows and about words without pieces.
  std::string remarks() const;
};

/// Reads the files. The names of the labels come from the training file or the model, as choose_labels decides; without
/// a training file and names in the model, from the file to evaluate. Throws Failure::input with file and line for a
/// label that is none of them, and for a file of which the tokenizer leaves nothing.
TokenData read_token_data(const TokenOptions& options, const TaskFiles& files, const ModelOutputs& model,
                          const text::Tokenizer& tokenizer);

/// The mean cross-entropy of the outputs, [tokens of the windows], where there is a target.
double mean_token_loss(const TokenSplit& split, const Logits& logits);

}  // namespace bertrand::tasks
