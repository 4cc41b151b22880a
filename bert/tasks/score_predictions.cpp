// The labels of two tables compared: those of the rows, and those that were predicted.
#include "bert/tasks/score_predictions.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "bert/tasks/cell.h"
#include "bert/tasks/class_report.h"
#include "bert/tasks/dataset.h"
#include "bert/tasks/labels.h"
#include "bert/tasks/metrics.h"
#include "io/error.h"
#include "io/json.h"

namespace bertrand::tasks {
namespace {

/// The classes in the model's order: each has a column.
LabelSet predicted_labels(const Table& predictions) {
  constexpr std::string_view kColumn = "probability_";
  std::vector<std::string> names;
  for (const std::string& column : predictions.columns)
    if (column.starts_with(kColumn)) names.push_back(column.substr(kColumn.size()));
  try {
    return LabelSet(std::move(names));
  } catch (const Error& error) {  // labels that differ in a tab or a line end alone are one in the file
    fail(Failure::input, "{}:1: {}", predictions.file, error.what());
  }
}

/// Of each row its id, its first text, its line and its target.
struct LabelledRows {
  std::string file;
  std::vector<std::string> ids, texts;
  std::vector<std::int64_t> lines;
  std::vector<std::int32_t> targets;
};

/// The rows of predictions.tsv, where an id may be empty. Those of another program may lack the texts.
LabelledRows predicted_rows(const Task& task, const Table& table, const LabelSet& labels) {
  LabelledRows rows{.file = table.file};
  const Dataset place{.file = table.file};
  const std::size_t id = *table.find_column("id"), prediction = *table.find_column("prediction");
  const auto text = table.find_column("text");
  table.rows.for_each([&](const Row& row) {
    Example example{.line = row.line};
    example.id = row.cell(id);
    if (std::ranges::count(row.invalid, prediction) > 0) refuse_invalid_label(table.where(row));
    example.label = trimmed_cell(row.cell(prediction));
    if (example.label->empty())
      fail(Failure::input,
           "{}: prediction: expected one, got an empty cell; hint: rows that --on-bad-line report left out cannot be "
           "judged, nor several labels for a text",
           place.where(example));
    rows.ids.push_back(example.id);
    if (text) rows.texts.push_back(row.cell(*text));
    rows.lines.push_back(example.line);
    rows.targets.push_back(targets_of(task, labels, place, example).front());
  });
  return rows;
}

/// The rows of the data, their ids and labels as predictions.tsv has them.
LabelledRows labelled_rows(const Task& task, const Table& table, const LabelSet& labels) {
  LabelledRows rows{.file = table.file};
  const Dataset place{.file = table.file};
  walk_examples(task, table, true, OnBadRow::fail, [&](Example example) {
    example.label = cell(*example.label);
    rows.ids.push_back(cell(example.id));
    rows.texts.push_back(cell(example.text_a));
    rows.lines.push_back(example.line);
    rows.targets.push_back(targets_of(task, labels, place, example).front());
  });
  return rows;
}

void check_same_rows(const LabelledRows& predicted, const LabelledRows& truth) {
  for (std::size_t i = 0; i < std::min(predicted.ids.size(), truth.ids.size()); ++i)
    if (predicted.ids[i] != truth.ids[i])
      fail(Failure::input, "{}:{}: id: expected \"{}\" as in {}:{}, got \"{}\"; hint: --id-column", predicted.file,
           predicted.lines[i], truth.ids[i], truth.file, truth.lines[i], predicted.ids[i]);
  // Ids are often the numbers of rows, so those of another file are the same.
  for (std::size_t i = 0; i < std::min(predicted.texts.size(), truth.texts.size()); ++i)
    if (predicted.texts[i] != truth.texts[i])
      fail(Failure::input, "{}:{}: text: expected {} as in {}:{}, got {}; hint: --text-column", predicted.file,
           predicted.lines[i], io::shown(io::Json(truth.texts[i])), truth.file, truth.lines[i],
           io::shown(io::Json(predicted.texts[i])));
  if (predicted.ids.size() != truth.ids.size())
    fail(Failure::input, "{}: rows: expected {} as in {}, got {}", predicted.file, truth.ids.size(), truth.file,
         predicted.ids.size());
}

/// Outputs of a head that says this.
Logits outputs_that_say(const Task& task, const LabelledRows& predicted, std::size_t classes) {
  const bool numbers = task.kind == Kind::regression;
  Logits logits{.outputs = numbers ? 1 : classes, .values = {}};
  std::vector<float> values(predicted.targets.size() * logits.outputs);
  for (std::size_t i = 0; i < predicted.targets.size(); ++i) {
    if (numbers) values[i] = std::bit_cast<float>(predicted.targets[i]);
    else values[i * classes + static_cast<std::size_t>(predicted.targets[i])] = 1;
  }
  logits.values.append(values);
  return logits;
}

}  // namespace

FileScores score_predictions(const Task& task, const std::string& data, const std::string& predictions) {
  check(task.kind != Kind::multi_label, "score_predictions: expected one label for a row, got several");
  const Task of_predictions = custom_task({.kind = task.kind, .columns = {}});
  const Table answers = read_rows(of_predictions, predictions, OnBadRow::fail);
  for (const char* column : {"id", "prediction"})
    if (std::ranges::count(answers.columns, column) != 1)
      fail(Failure::input, "{}:1: columns: expected those of predictions.tsv, got {}", predictions,
           in_braces(answers.columns));
  const LabelSet labels = predicted_labels(answers);
  if (task.kind == Kind::classification && labels.empty())
    fail(Failure::input, "{}:1: columns: expected probability_LABEL for each class, got {}", predictions,
         in_braces(answers.columns));
  const LabelledRows predicted = predicted_rows(of_predictions, answers, labels);
  const LabelledRows truth = labelled_rows(task, read_rows(task, data, OnBadRow::fail), labels);
  check_same_rows(predicted, truth);
  Task judged = task;  // F1 is of the second label, whatever its number is in the model
  if (task.labels.size() == 2) judged.positive = labels.find(task.labels[1]).value_or(task.positive);
  FileScores scores;
  for (const auto& [name, value] : evaluate(judged, outputs_that_say(task, predicted, labels.size()), truth.targets))
    if (name != "eval_loss") scores.figures[name.substr(name.find('_') + 1)] = value;
  scores.figures["rows"] = static_cast<double>(truth.targets.size());
  if (task.kind == Kind::classification) scores.table = class_report(labels, predicted.targets, truth.targets);
  return scores;
}

}  // namespace bertrand::tasks
