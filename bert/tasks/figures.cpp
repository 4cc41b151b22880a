#include "bert/tasks/figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.h"
#include "io/nearest_name.h"

namespace bertrand::tasks {
namespace {

/// As scikit-learn has it.
constexpr const char* kMacroF1 = "mean of the F1 of each label that is true or predicted (macro)";

Figure loss(std::string of) { return {.name = "loss", .meaning = std::move(of), .lower_is_better = true}; }

std::string meaning_of_f1(const Task& task, const LabelSet& labels) {
  if (labels.empty()) return fmt::format("F1 of the second label; if there are more than two, the {}", kMacroF1);
  if (labels.size() != 2) return kMacroF1;
  return fmt::format("F1 of the label {}", labels.name(static_cast<std::size_t>(task.positive)));
}

std::string meaning_of(Metric metric, const Task& task, const LabelSet& labels) {
  switch (metric) {
    case Metric::accuracy:
      return task.kind == Kind::multi_label ? "share of the rows of which every label is right"
                                            : "share of the rows whose label is right";
    case Metric::f1: return meaning_of_f1(task, labels);
    case Metric::macro_f1: return "mean of the F1 of each label (macro)";
    case Metric::micro_f1: return "F1 over all labels of all rows together (micro)";
    case Metric::matthews: return "Matthews' correlation of true and predicted labels";
    case Metric::pearson: return "Pearson's correlation of true and predicted numbers";
    case Metric::spearman: return "Spearman's correlation: that of the ranks";
  }
  return "";
}

}  // namespace

std::vector<Figure> figures_of(const Task& task, const LabelSet& labels) {
  std::vector<Figure> figures;
  for (const Metric metric : task.metrics)
    figures.push_back(
        {.name = std::string(metric_name(metric)), .meaning = meaning_of(metric, task, labels), .decides = true});
  figures.push_back(loss(task.kind == Kind::regression    ? "mean squared error of a row"
                         : task.kind == Kind::multi_label ? "mean binary cross-entropy of a row and label"
                                                          : "mean cross-entropy of a row"));
  return figures;
}

std::vector<Figure> figures_of(TokenTask task) {
  const Figure by_word = loss("mean cross-entropy of a word, or of a piece with --label-all-pieces");
  const std::string accuracy = "share of the words whose label is right";
  if (task == TokenTask::pos || task == TokenTask::tokens)
    return {
        {.name = "accuracy", .meaning = accuracy, .decides = true}, {.name = "macro_f1", .meaning = kMacroF1}, by_word};
  const std::string what = task == TokenTask::ner ? "entities of all types together (micro), as seqeval counts them"
                                                  : "words with a label other than O, all labels together (micro)";
  std::vector<Figure> figures = {{.name = "f1", .meaning = fmt::format("F1 over {}", what), .decides = true},
                                 {.name = "precision", .meaning = fmt::format("precision over {}", what)},
                                 {.name = "recall", .meaning = fmt::format("recall over {}", what)},
                                 {.name = "accuracy", .meaning = accuracy},
                                 by_word};
  if (task == TokenTask::ner)
    figures.push_back({.name = "illegal_tags",
                       .meaning = "predicted tags that continue no entity of their type",
                       .lower_is_better = true});
  return figures;
}

std::vector<Figure> answer_figures(bool version_2) {
  std::vector<Figure> figures = {
      {.name = "f1", .meaning = "mean over the questions of the F1 of the answer's words, in percent", .decides = true},
      {.name = "exact_match", .meaning = "questions whose answer is right to the word, in percent"}};
  if (!version_2) return figures;
  for (const auto& [prefix, which] :
       {std::pair("has_answer_", "that have an answer"), std::pair("no_answer_", "that have none")}) {
    figures.push_back({.name = fmt::format("{}f1", prefix), .meaning = fmt::format("f1 of the questions {}", which)});
    figures.push_back(
        {.name = fmt::format("{}exact", prefix), .meaning = fmt::format("exact_match of the questions {}", which)});
  }
  figures.push_back({.name = "best_f1", .meaning = "f1 with the best --null-score-diff-threshold"});
  figures.push_back({.name = "best_exact", .meaning = "exact_match with the best --null-score-diff-threshold"});
  return figures;
}

std::vector<Figure> ranking_figures() {
  const std::string mean = "mean over the queries of ";
  return {
      {.name = "mrr_at_10", .meaning = mean + "1 / rank of the first relevant passage, 0 beyond 10", .decides = true},
      {.name = "mrr", .meaning = mean + "1 / rank of the first relevant passage"},
      {.name = "map", .meaning = mean + "the average precision"},
      {.name = "ndcg", .meaning = mean + "the normalised discounted gain"},
      {.name = "rprec", .meaning = mean + "the precision among as many passages as are relevant"},
      loss("mean cross-entropy of a passage")};
}

void decide_by(std::vector<Figure>& figures, std::string_view name) {
  if (name.empty()) return;
  constexpr std::string_view kPrefix = "eval_";
  const std::string_view plain = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
  std::vector<std::string> names;
  for (const Figure& figure : figures) names.push_back(figure.name);
  if (std::ranges::find(names, plain) == names.end())
    fail(Failure::usage, "--metric-for-best-model: expected one of {}, got {}{}", fmt::join(names, ", "), name,
         io::did_you_mean(std::string(plain), names));
  for (Figure& figure : figures) figure.decides = figure.name == plain;
}

double score_of(const std::vector<Figure>& figures, const std::function<double(const std::string& name)>& value) {
  double sum = 0, count = 0;
  for (const Figure& figure : figures) {
    if (!figure.decides) continue;
    sum += figure.lower_is_better ? -value(figure.name) : value(figure.name);
    ++count;
  }
  return sum / count;
}

std::string deciding(const std::vector<Figure>& figures) {
  std::vector<std::string> names;
  for (const Figure& figure : figures)
    if (figure.decides) names.push_back(figure.name + (figure.lower_is_better ? " (the lowest)" : ""));
  if (names.size() < 2) return names.empty() ? "" : names.front();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("the mean of {} and {}", fmt::join(names, ", "), last);
}

}  // namespace bertrand::tasks
