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
  std::size_t begin = 0;
  words.list.for_each([&](std::size_t, const TokenFile& sentence) {
    const std::size_t count = sentence.words.size();
    take(names_of(words.truth.subspan(begin, count)), names_of(words.predicted.subspan(begin, count)));
    begin += count;
  });
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

CommonLabel most_common(const std::map<std::int32_t, std::int64_t>& counts) {
  check(!counts.empty(), "most_common: expected a label, got none");
  std::int64_t sum = 0;
  for (const auto& [label, count] : counts) sum += count;
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return {most->first, static_cast<float>(most->second) / static_cast<float>(sum)};
}

WordPredictions predict_words(std::span<const std::int64_t> tokens, const Logits& logits,
                              const std::optional<CommonLabel>& common, const io::SpillPlace& spill) {
  constexpr std::int64_t kNone = -1;
  const auto label_of = [&](std::size_t word) {
    constexpr std::size_t kLetGo = std::size_t{1} << 18;  // words
    if (word % kLetGo == 0) logits.values.let_go();       // for memory alone
    return arg_max(logits.row(static_cast<std::size_t>(tokens[word])));
  };
  CommonLabel other = common.value_or(CommonLabel{});
  if (!common && std::ranges::find(tokens, kNone) != tokens.end()) {
    std::map<std::int32_t, std::int64_t> counts;
    for (std::size_t w = 0; w < tokens.size(); ++w)
      if (tokens[w] != kNone) ++counts[label_of(w)];
    if (!counts.empty()) other = most_common(counts);
  }
  WordPredictions words;
  for (std::size_t w = 0; w < tokens.size(); ++w) {
    const bool has_token = tokens[w] != kNone;
    const std::int32_t label = has_token ? label_of(w) : other.label;
    words.labels.push_back(label);
    words.probabilities.push_back(has_token ? probability_of(logits.row(static_cast<std::size_t>(tokens[w])), label)
                                            : other.share);
    words.labels.spill_if_due(spill);
    words.probabilities.spill_if_due(spill);
  }
  words.labels.finish(spill);
  words.probabilities.finish(spill);
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

void write_token_predictions_tsv(const SentenceList& list, const LabelSet& names, const WordPredictions& predictions,
                                 const std::function<void(std::string_view row)>& write) {
  const std::span<const std::int32_t> labels = predictions.labels.all();
  const std::span<const float> probabilities = predictions.probabilities.all();
  check(labels.size() == list.words(), "predictions: expected {} words, got {}", list.words(), labels.size());
  const bool labelled = list.labelled();
  write(labelled ? "sentence\tword\tprediction\tprobability\tlabel\n" : "sentence\tword\tprediction\tprobability\n");
  std::size_t word = 0;
  list.for_each([&](std::size_t s, const TokenFile& sentence) {
    for (std::size_t w = 0; w < sentence.words.size(); ++w, ++word)
      write(fmt::format("{}\t{}\t{}\t{}{}\n", s, cell(sentence.words[w]),
                        cell(names.name(static_cast<std::size_t>(labels[word]))), probabilities[word],
                        labelled ? '\t' + cell(sentence.labels[w]) : ""));
  });
}

}  // namespace bertrand::tasks
