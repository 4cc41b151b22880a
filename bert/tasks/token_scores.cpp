// Predictions word by word, and what is counted of them.
#include "bert/tasks/token_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bert/tasks/cell.h"
#include "bert/tasks/class_report.h"
#include "bert/tasks/entity_report.h"
#include "io/error.h"

namespace bertrand::tasks {
namespace {

/// softmax(row)[label], where the label's entry is the largest.
float probability_of(std::span<const float> row, std::int32_t label) {
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - row[static_cast<std::size_t>(label)]);
  return static_cast<float>(1 / sum);
}

/// Calls `take` with the true and the predicted tags of each sentence.
template <class Take>
void for_each_sentence(const JudgedWords& words, const Take& take) {
  const auto names_of = [&](std::span<const std::int32_t> labels) {
    std::vector<std::string> names;
    for (const std::int32_t label : labels) names.push_back(words.names.name(static_cast<std::size_t>(label)));
    return names;
  };
  for (std::size_t s = 0; s < words.file.sentences(); ++s) {
    const std::size_t begin = words.file.offsets[s], count = words.file.offsets[s + 1] - begin;
    take(names_of(words.truth.subspan(begin, count)), names_of(words.predicted.subspan(begin, count)));
  }
}

EntityScores entity_scores(const JudgedWords& words) {
  EntityCounter counter;
  for_each_sentence(words, [&](const auto& truth, const auto& predicted) { counter.add(truth, predicted); });
  return counter.scores();
}

std::vector<ClassCounts> counts_of(const JudgedWords& words) {
  return class_counts(words.predicted, words.truth, words.names.size());
}

/// Over all labels other than O.
ClassFigures micro_figures(const JudgedWords& words) {
  const std::vector<ClassCounts> counts = counts_of(words);
  ClassCounts sum;
  for (std::size_t label = 0; label < counts.size(); ++label)
    if (words.names.name(label) != "O") sum += counts[label];
  return sum.figures();
}

}  // namespace

const io::Choices<TokenTask>& token_tasks() {
  static const io::Choices<TokenTask> choices{
      {"ner", TokenTask::ner}, {"pos", TokenTask::pos}, {"punct", TokenTask::punct}, {"tokens", TokenTask::tokens}};
  return choices;
}

CommonLabel most_common(std::span<const std::int32_t> labels) {
  std::map<std::int32_t, std::int64_t> counts;
  for (const std::int32_t label : labels) ++counts[label];
  return most_common(counts);
}

CommonLabel most_common(const std::map<std::int32_t, std::int64_t>& counts) {
  check(!counts.empty(), "most_common: expected a label, got none");
  std::int64_t sum = 0;
  for (const auto& [label, count] : counts) sum += count;
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return {most->first, static_cast<float>(most->second) / static_cast<float>(sum)};
}

WordPredictions predict_words(const EncodedSentences& sentences, const Logits& logits,
                              const std::optional<CommonLabel>& common) {
  constexpr std::int32_t kNone = -1;
  WordPredictions words;
  std::vector<std::int32_t> seen;
  for (std::size_t w = 0; w < sentences.words(); ++w) {
    const auto token = sentences.token(w);
    words.labels.push_back(token ? arg_max(logits.row(*token)) : kNone);
    words.probabilities.push_back(token ? probability_of(logits.row(*token), words.labels.back()) : 0);
    if (token) seen.push_back(words.labels.back());
  }
  if (seen.size() == words.labels.size()) return words;  // for speed alone: no word lacks a label
  const CommonLabel other = common ? *common : seen.empty() ? CommonLabel{} : most_common(seen);
  for (std::size_t w = 0; w < words.labels.size(); ++w)
    if (words.labels[w] == kNone) words.labels[w] = other.label, words.probabilities[w] = other.share;
  return words;
}

std::map<std::string, double> token_figures(TokenTask task, const JudgedWords& words) {
  std::map<std::string, double> figures;
  const auto add = [&](const ClassFigures& of) {
    figures["eval_precision"] = of.precision, figures["eval_recall"] = of.recall, figures["eval_f1"] = of.f1;
  };
  figures["eval_accuracy"] = accuracy(words.predicted, words.truth);
  if (task == TokenTask::pos || task == TokenTask::tokens)
    figures["eval_macro_f1"] = macro_f1(words.predicted, words.truth);
  if (task == TokenTask::punct) add(micro_figures(words));
  if (task == TokenTask::ner) {
    const EntityScores scores = entity_scores(words);
    add(scores.micro);
    figures["eval_illegal_tags"] = static_cast<double>(scores.illegal.sum());
  }
  return figures;
}

std::string token_report(TokenTask task, const JudgedWords& words) {
  return task == TokenTask::ner ? entity_report(entity_scores(words))
                                : class_report(words.names, words.predicted, words.truth);
}

std::string illegal_tags_report(const JudgedWords& words) {
  IllegalPairs pairs;
  for_each_sentence(words, [&](const auto&, const std::vector<std::string>& predicted) { pairs.add(predicted); });
  std::string text = "before\ttag\tcount\n";
  for (const auto& [pair, count] : pairs.counts())
    text += fmt::format("{}\t{}\t{}\n", cell(pair.first), cell(pair.second), count);
  return text;
}

void write_token_predictions_tsv(const TokenFile& file, const LabelSet& names, const WordPredictions& predictions,
                                 const std::function<void(std::string_view row)>& write) {
  check(predictions.labels.size() == file.words.size(), "predictions: expected {} words, got {}", file.words.size(),
        predictions.labels.size());
  const bool labelled = !file.labels.empty();
  write(labelled ? "sentence\tword\tprediction\tprobability\tlabel\n" : "sentence\tword\tprediction\tprobability\n");
  for (std::size_t s = 0; s < file.sentences(); ++s)
    for (std::size_t w = file.offsets[s]; w < file.offsets[s + 1]; ++w) {
      write(fmt::format("{}\t{}\t{}\t{}{}\n", s, cell(file.words[w]),
                        cell(names.name(static_cast<std::size_t>(predictions.labels[w]))), predictions.probabilities[w],
                        labelled ? '\t' + cell(file.labels[w]) : ""));
    }
}

}  // namespace bertrand::tasks
