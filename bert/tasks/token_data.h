// The files of a run that labels words: read, cut into windows, and their labels understood.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bert/tasks/entity_scores.h"
#include "bert/tasks/labels.h"
#include "bert/tasks/sentence_list.h"
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

/// Labels that continue no entity of their type, of a file with entities. Each counts as the beginning of one.
struct IllegalLabels {
  IllegalPairs pairs;
  std::int64_t first_line = 0;

  void add(const TokenFile& sentences);
  /// A line for people; "" if there are none.
  std::string remark(const std::string& file) const;
};

/// A file as the model reads it.
struct EncodedWords {
  std::string file;
  EncodedDataset windows;  ///< with a target for each token: the label that counts there, or −1; none to predict
  std::size_t sentences = 0, words = 0, without_pieces = 0;
  std::int64_t cut = 0;  ///< sentences of more than one window
  IllegalLabels illegal = {};
  text::InvalidBytes invalid = {};
  bool only_numbers = true;  ///< as words_are_numbers() has it

  /// Counts the last words of `encoded`, which forgets them.
  void count(EncodedSentences& encoded);
  /// After the last sentence. Throws Failure::input, beginning with `where`, if the tokenizer has left nothing.
  void take(EncodedSentences encoded, const std::string& where);
};

/// A file to evaluate on or to predict.
struct TokenSplit : EncodedWords {
  SentenceList list = {};
  io::Spillable<std::int64_t> tokens = {};  ///< [words]: the token whose output is the word's, or −1 without pieces
  io::Spillable<std::int32_t> labels = {};  ///< [words]; empty for a file to predict

  /// On the host, beside the windows.
  std::size_t bytes() const { return list.held_bytes() + tokens.held_bytes() + labels.held_bytes(); }
};

/// A file to train on.
struct TrainedWords : EncodedWords {
  CommonLabel common = {};  ///< of its words
};

struct TokenData {
  TokenTask task = TokenTask::tokens;
  LabelSet labels;
  std::optional<TrainedWords> train;
  std::optional<TokenSplit> evaluation, prediction;
  io::SpillPlace spill = {};               ///< where what is said of the words goes if it is much
  std::vector<std::string> bad_rows = {};  ///< what is wrong with lines of the files, if TaskFiles::on_bad keeps them

  /// The most frequent label of the training file.
  std::optional<CommonLabel> common() const { return train ? std::optional(train->common) : std::nullopt; }
  std::size_t bytes() const;  ///< of all splits
  /// Lines for people about bytes that were no UTF-8, and about columns that seem to be others than those of words and
  /// labels; "" if there is nothing to say.
  std::string warnings() const;
  /// The same about windows, words without pieces and labels that continue nothing.
  std::string remarks() const;
};

/// Reads the files. The names of the labels come from the training file or the model, as choose_labels decides; without
/// a training file and names in the model, from the file to evaluate. Throws Failure::input with file and line for a
/// label that is none of them, and for a file of which the tokenizer leaves nothing.
TokenData read_token_data(const TokenOptions& options, const TaskFiles& files, const ModelOutputs& model,
                          const text::Tokenizer& tokenizer);

/// The labels of a file to train on. Throws Failure::input, beginning with `where`, if there are fewer than two, with
/// the first of the `bad` lines in place of that if there are any.
LabelSet learn_token_labels(const LabelNames& names, const std::string& where, const std::vector<std::string>* bad);
/// The labels of a file's words. A bad one that is kept in `bad` counts as the first; else it throws Failure::input
/// with file and line.
std::vector<std::int32_t> numbered_labels(const TokenFile& file, const LabelSet& names, std::vector<std::string>* bad);
/// Gives the tokens of `encoded` that have no target yet theirs: `labels` are those of its last words.
void append_targets(std::span<const std::int32_t> labels, const LabelSet& names, bool label_all_pieces,
                    EncodedSentences& encoded);

/// The mean cross-entropy of the outputs, [tokens of the windows], over the tokens that have a target.
double mean_token_loss(const TokenSplit& split, const Logits& logits);

}  // namespace bertrand::tasks
