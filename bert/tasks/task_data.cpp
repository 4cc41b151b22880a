// The files of a task read, labelled and encoded together.
#include "bert/tasks/task_data.h"

#include "io/error.h"

namespace bertrand::tasks {
namespace {

std::optional<Split> read(const Task& task, const std::filesystem::path& path, bool needs_label) {
  if (path.empty()) return std::nullopt;
  return Split{.dataset = read_dataset(task, path.string(), needs_label), .encoded = {}};
}

/// What the data alone says: the task's labels, or those of the training file; without one, of the file to evaluate if
/// the model has no names of its own.
LabelSet data_labels(const TaskData& data, const LabelSet& model) {
  if (data.train) return learn_labels(data.task, data.train->dataset);
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
void check_same_texts(const TaskData& data) {
  const auto kind_of = [](const Split& split) {
    return split.dataset.examples.front().text_b ? "pairs of texts" : "single texts";
  };
  const Split* first = nullptr;
  for (const auto* split : {&data.train, &data.evaluation, &data.prediction}) {
    if (!*split) continue;
    if (!first) first = &**split;
    if ((*split)->dataset.examples.front().text_b.has_value() != first->dataset.examples.front().text_b.has_value())
      fail(Failure::input, "{}:1: columns: expected {} as in {}, got {}; hint: --text-column, --text-pair-column",
           (*split)->dataset.file, kind_of(*first), first->dataset.file, kind_of(**split));
  }
}

/// Once encoded, texts to train on and to predict are not looked at again; that there was a second one still is.
void drop_texts(Dataset& dataset) {
  for (Example& example : dataset.examples) {
    std::string().swap(example.text_a);
    if (example.text_b) std::string().swap(*example.text_b);
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

std::string remarks_of(const Split& split) {
  if (split.encoded.cut == 0) return "";
  return fmt::format("{}: {} of {} examples cut to --max-seq-length\n", split.dataset.file, split.encoded.cut,
                     split.encoded.size());
}

}  // namespace

std::size_t TaskData::text_bytes() const {
  std::size_t bytes = 0;
  if (evaluation)
    for (const Example& example : evaluation->dataset.examples)
      bytes += example.text_a.size() + example.text_b.value_or("").size();
  return bytes;
}

std::string TaskData::warnings() const {
  std::string text;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) text += warnings_of(**split);
  return text;
}

std::string TaskData::remarks() const {
  std::string text;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) text += remarks_of(**split);
  return text;
}

TaskData read_task_data(const Task& task, const TaskFiles& files, const ModelOutputs& model,
                        const text::Tokenizer& tokenizer, int max_length) {
  TaskData data{.task = task};
  if (files.train.empty()) check_kind(model, task);
  data.train = read(data.task, files.train, true);
  data.evaluation = read(data.task, files.evaluation, true);
  data.prediction = read(data.task, files.prediction, false);
  check_same_texts(data);
  if (data.task.kind != Kind::regression) {
    const LabelSet own(model.labels);
    data.labels = choose_labels(data_labels(data, own), own, data.train.has_value());
    // F1 is of the second label, whatever its number is in the model.
    if (task.labels.size() == 2) data.task.positive = data.labels.find(task.labels[1]).value_or(1);
    if (data.labels.empty())
      fail(Failure::model,
           "{}: id2label: expected the names of the classes in config.json or a file to --train, got none",
           model.directory.string());
  }
  for (std::optional<Split>* split : {&data.train, &data.evaluation, &data.prediction}) {
    if (!*split) continue;
    if (split != &data.prediction) assign_targets(data.task, data.labels, (*split)->dataset);
    (*split)->encoded = encode_dataset((*split)->dataset, tokenizer, max_length);
    if (split != &data.evaluation) drop_texts((*split)->dataset);
  }
  return data;
}

}  // namespace bertrand::tasks
