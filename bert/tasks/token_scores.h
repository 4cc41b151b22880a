// What the outputs of a token model say of each word, and the figures and reports that token tasks are judged by.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/labels.h"
#include "bert/tasks/metrics.h"
#include "bert/tasks/sentence_list.h"
#include "io/choices.h"

namespace bertrand::tasks {

enum class TokenTask {
  ner,    ///< entities: B-X begins one, I-X continues it, O is outside
  pos,    ///< one of several classes for each word
  punct,  ///< the same, where O says that there is nothing
  tokens  ///< any labels, judged as pos
};

/// As --task has them.
const io::Choices<TokenTask>& token_tasks();

/// A label and its share of the words.
struct CommonLabel {
  std::int32_t label = 0;
  float share = 0;
};
/// The most frequent one of how often each label occurs, the first of equals. Throws Failure::bug if there is none.
CommonLabel most_common(const std::map<std::int32_t, std::int64_t>& counts);

/// What a model says of each word.
struct WordPredictions {
  io::Spillable<std::int32_t> labels;
  io::Spillable<float> probabilities;  ///< of these labels
};

/// `tokens` are those whose rows of `logits` are the words' outputs; −1 is a word without pieces. It gets `common`; if
/// that is absent, the most frequent label among the other words. What is more than `spill` says goes to the disk.
WordPredictions predict_words(std::span<const std::int64_t> tokens, const Logits& logits,
                              const std::optional<CommonLabel>& common, const io::SpillPlace& spill = {});

/// True and predicted labels of the words of `list`, as numbers in `names`.
struct JudgedWords {
  const SentenceList& list;
  const LabelSet& names;
  std::span<const std::int32_t> truth, predicted;
};

/// ner: eval_precision, eval_recall and eval_f1 of entities as seqeval's, eval_accuracy of the words, and
/// eval_illegal_tags, the number of predicted tags that continue no entity of their type. pos and tokens:
/// eval_accuracy, eval_macro_f1. punct: eval_precision, eval_recall and eval_f1 over the labels other than O,
/// eval_accuracy.
std::map<std::string, double> token_figures(TokenTask task, const JudgedWords& words);

/// eval_report.tsv: class_report() of the labels; for ner entity_report().
std::string token_report(TokenTask task, const JudgedWords& words);

/// eval_illegal_tags.tsv: a header; then each predicted tag that continues no entity of its type, with the tag before
/// it, and how often the two occur.
std::string illegal_tags_report(const JudgedWords& words);

/// predictions.tsv: a header; then a row for each word: the sentence's number from 0, the word, its label and the
/// label's probability, and the file's label if it has one. `write` gets the rows.
void write_token_predictions_tsv(const SentenceList& list, const LabelSet& names, const WordPredictions& predictions,
                                 const std::function<void(std::string_view row)>& write);

}  // namespace bertrand::tasks
