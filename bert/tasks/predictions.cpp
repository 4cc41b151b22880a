// predictions.tsv, row by row.
#include "bert/tasks/predictions.h"

#include <fmt/format.h>

#include <cmath>

#include "bert/tasks/cell.h"
#include "io/error.h"

namespace bertrand::tasks {
namespace {

std::vector<float> probabilities(std::span<const float> row) {
  const std::vector<double> shares = softmax(row);
  return {shares.begin(), shares.end()};
}

std::vector<float> sigmoid(std::span<const float> row) {
  std::vector<float> each;
  for (const float x : row) each.push_back(static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x)))));
  return each;
}

std::string answer(const Task& task, const LabelSet& labels, std::span<const float> row) {
  if (task.kind == Kind::regression) return fmt::format("{}", row[0]);
  if (task.kind == Kind::classification) return labels.name(static_cast<std::size_t>(arg_max(row)));
  std::vector<std::string> names;
  for (std::size_t j = 0; j < row.size(); ++j)
    if (row[j] >= 0) names.push_back(labels.name(j));
  return fmt::format("{}", fmt::join(names, task.label_separator));
}

}  // namespace

std::string predictions_tsv(const Task& task, const LabelSet& labels, const Dataset& dataset, const Logits& logits) {
  check(logits.rows() == dataset.examples.size(), "predictions: expected {} rows of outputs, got {}",
        dataset.examples.size(), logits.rows());
  std::string text = "id\tprediction";
  for (const std::string& name : labels.names()) text += "\tprobability_" + cell(name);
  text += dataset.labelled ? "\tlabel\n" : "\n";
  for (std::size_t i = 0; i < dataset.examples.size(); ++i) {
    const Example& example = dataset.examples[i];
    text += cell(example.id) + '\t' + cell(answer(task, labels, logits.row(i)));
    if (task.kind == Kind::classification) text += fmt::format("\t{}", fmt::join(probabilities(logits.row(i)), "\t"));
    if (task.kind == Kind::multi_label) text += fmt::format("\t{}", fmt::join(sigmoid(logits.row(i)), "\t"));
    if (dataset.labelled) text += '\t' + cell(example.label.value_or(""));
    text += '\n';
  }
  return text;
}

}  // namespace bertrand::tasks
