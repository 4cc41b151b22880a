// predictions.tsv, row by row.
#include "bert/tasks/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bert/tasks/cell.h"
#include "io/error.h"

namespace bertrand::tasks {
namespace {

std::string answer(const Task& task, const LabelSet& labels, std::span<const float> row) {
  if (task.kind == Kind::regression) return fmt::format("{}", row[0]);
  if (task.kind == Kind::classification) return labels.name(static_cast<std::size_t>(arg_max(row)));
  std::vector<std::string> names;
  for (std::size_t j = 0; j < row.size(); ++j)
    if (row[j] >= 0) names.push_back(labels.name(j));
  return fmt::format("{}", fmt::join(names, task.label_separator));
}

}  // namespace

void write_predictions_tsv(const Task& task, const LabelSet& labels, const Dataset& dataset, const Logits& logits,
                           const std::function<void(std::string_view part)>& write) {
  check(logits.rows() == dataset.examples.size(), "predictions: expected {} rows of outputs, got {}",
        dataset.examples.size(), logits.rows());
  constexpr std::size_t kPart = std::size_t{1} << 20;  // bytes
  std::string text = "id\tprediction";
  for (const std::string& name : labels.names()) text += "\tprobability_" + cell(name);
  if (dataset.labelled) text += "\tlabel";
  const bool one_of_several = task.kind == Kind::classification, pairs = dataset.pairs;
  text += fmt::format("{}\ttext{}\n", one_of_several ? "\tprobability" : "", pairs ? "\ttext_pair" : "");
  const auto columns = static_cast<std::size_t>(std::ranges::count(text, '\t'));
  auto bad = dataset.bad_rows.begin();
  const auto bad_rows_before = [&](std::int64_t line) {
    for (; bad != dataset.bad_rows.end() && bad->line < line; ++bad)
      text += cell(bad->id) + std::string(columns, '\t') + '\n';
  };
  dataset.examples.for_each([&](std::size_t number, const Example& example) {
    logits.let_go(number);  // for memory alone
    const std::span<const float> row = logits.row(number);
    const std::vector<double> all = probabilities(task.kind, row);
    const std::vector<float> shares(all.begin(), all.end());
    bad_rows_before(example.line);
    text += cell(example.id) + '\t' + cell(answer(task, labels, row));
    if (task.kind != Kind::regression) text += fmt::format("\t{}", fmt::join(shares, "\t"));
    if (dataset.labelled) text += '\t' + cell(example.label.value_or(""));
    if (one_of_several) text += fmt::format("\t{}", std::ranges::max(shares));
    text += '\t' + cell(example.text_a);
    if (pairs) text += '\t' + cell(example.second_text().value_or(""));
    text += '\n';
    if (text.size() < kPart) return;  // fewer and larger writes, for speed alone
    write(text);
    text.clear();
  });
  bad_rows_before(std::numeric_limits<std::int64_t>::max());
  write(text);
}

}  // namespace bertrand::tasks
