// The files of a task read, labelled and encoded together.
#include "bert/tasks/task_data.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "bert/tasks/training_rows.h"
#include "io/error.h"

namespace bertrand::tasks {
namespace {

std::optional<Split> read(const Task& task, const std::filesystem::path& path, bool needs_label, OnBadRow on_bad) {
  if (path.empty()) return std::nullopt;
  return Split{.dataset = read_dataset(task, path.string(), needs_label, on_bad), .encoded = {}};
}

/// What the data alone says: the task's labels, or those of the training file; without one, of the file to evaluate if
/// the model has no names of its own.
LabelSet data_labels(const TaskData& data, const std::optional<TrainingRows>& training, const LabelSet& model) {
  if (training) return training->labels();
  if (!data.task.labels.empty()) return LabelSet(data.task.labels);
  if (data.evaluation && model.placeholders()) return learn_labels(data.task, data.evaluation->dataset);
  return {};
}

/// A model that is used as it is gives what it was trained to give.
void check_kind(const ModelOutputs& model, const Task& task) {
  const std::string_view expected = problem_type(task.kind);
  if (!model.problem_type.empty() && model.problem_type != expected)
    fail(Failure::model, "{}: problem_type: expected {} for {}, got {}; hint: --train makes another model of it",
         (model.directory / "config.json").string(), expected,
         task.name == "custom" ? fmt::format("--kind {}", kind_name(task.kind)) : "--task " + task.name,
         model.problem_type);
}

/// A second text may be read by the name of its column alone, so a file without it would go unnoticed.
void check_same_texts(const TaskData& data, const std::optional<TrainingRows>& training) {
  const auto kind_of = [](const Dataset& dataset) { return dataset.pairs ? "pairs of texts" : "single texts"; };
  const Dataset* first = training ? &training->dataset() : nullptr;
  for (const auto* split : {&data.evaluation, &data.prediction}) {
    if (!*split) continue;
    const Dataset& dataset = (*split)->dataset;
    if (!first) first = &dataset;
    if (dataset.pairs != first->pairs)
      fail(Failure::input, "{}:1: columns: expected {} as in {}, got {}; hint: --text-column, --text-pair-column",
           dataset.file, kind_of(*first), first->file, kind_of(dataset));
  }
}

std::string warnings_of(const Split& split) {
  std::string text;
  const Dataset& dataset = split.dataset;
  if (!dataset.skipped_lines.empty())
    text += fmt::format("warning: {}:{}: columns: left out {} rows with a wrong number of them, the first here\n",
                        dataset.file, dataset.skipped_lines.front(), dataset.skipped_lines.size());
  if (dataset.invalid.count > 0) text += fmt::format("warning: {}\n", dataset.invalid.message(dataset.file));
  return text;
}

/// Labels that no one means.
std::string doubts_about_labels(const TaskData& data) {
  if (!data.train || data.task.kind != Kind::classification || !data.task.labels.empty()) return "";
  const std::string& file = data.train->dataset.file;
  const std::size_t rows = static_cast<std::size_t>(data.train->encoded.size()), labels = data.labels.size();
  std::string text;
  if (labels > 2 && 2 * labels > rows)
    text += fmt::format("warning: {}: {} labels in {} rows: is --label-column the right one?\n", file, labels, rows);
  std::map<std::string, std::string> by_letters;
  for (const std::string& name : data.labels.names()) {
    std::string small = name;
    std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto [other, is_new] = by_letters.emplace(small, name);
    if (is_new) continue;
    text += fmt::format("warning: {}: the labels \"{}\" and \"{}\" differ in case alone: they are two classes\n", file,
                        other->second, name);
    break;
  }
  return text;
}

std::string remarks_of(const Split& split) {
  if (split.encoded.cut == 0) return "";
  return fmt::format("{}: {} of {} examples cut to --max-seq-length\n", split.dataset.file, split.encoded.cut,
                     split.encoded.size());
}

}  // namespace

std::size_t TaskData::text_bytes() const {
  std::size_t bytes = 0;
  for (const auto* split : {&evaluation, &prediction})
    if (*split)
      for (const Example& example : (*split)->dataset.examples)
        bytes += example.text_a.size() + example.text_b.value_or("").size();
  return bytes;
}

std::string TaskData::warnings() const {
  std::string text;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) text += warnings_of(**split);
  return text + doubts_about_labels(*this);
}

std::string TaskData::remarks() const {
  std::string text;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) text += remarks_of(**split);
  return text;
}

std::vector<std::string> TaskData::bad_rows() const {
  std::vector<std::string> messages;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split)
      for (const BadRow& row : (*split)->dataset.bad_rows) messages.push_back(row.message);
  return messages;
}

TaskData read_task_data(const Task& task, const TaskFiles& files, const ModelOutputs& model,
                        const text::Tokenizer& tokenizer, int max_length) {
  TaskData data{.task = task};
  if (files.train.empty()) check_kind(model, task);
  std::optional<TrainingRows> training;
  if (!files.train.empty()) training.emplace(task, files);
  data.evaluation = read(data.task, files.evaluation, true, files.on_bad);
  data.prediction = read(data.task, files.prediction, false, files.on_bad_prediction);
  check_same_texts(data, training);
  if (data.task.kind != Kind::regression) {
    const LabelSet own(model.labels);
    data.labels = choose_labels(data_labels(data, training, own), own, training.has_value());
    // F1 is of the second label, whatever its number is in the model.
    if (task.labels.size() == 2) data.task.positive = data.labels.find(task.labels[1]).value_or(1);
    if (data.labels.empty())
      fail(Failure::model,
           "{}: id2label: expected the names of the classes in config.json or a file to --train, got none",
           model.directory.string());
  }
  if (training) data.train = training->encode(data.labels, tokenizer, max_length, data.evaluation);
  training.reset();  // its rows
  for (std::optional<Split>* split : {&data.evaluation, &data.prediction}) {
    if (!*split) continue;
    const OnBadRow on_bad = split == &data.prediction ? files.on_bad_prediction : files.on_bad;
    if (split == &data.evaluation) assign_targets(data.task, data.labels, (*split)->dataset, on_bad);
    (*split)->encoded = encode_dataset((*split)->dataset, tokenizer, max_length, on_bad, files.spill);
  }
  return data;
}

}  // namespace bertrand::tasks
