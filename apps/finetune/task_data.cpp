#include "apps/finetune/task_data.h"

#include "tensor/error.h"

namespace bertrand::finetune {
namespace {

std::optional<Split> read(const tasks::Task& task, const std::filesystem::path& path, bool needs_label) {
  if (path.empty()) return std::nullopt;
  return Split{.dataset = tasks::read_dataset(task, path.string(), needs_label), .encoded = {}};
}

/// What the data alone says: the task's labels, or those of the training file; without one, of the file to evaluate if
/// the model has no names of its own.
tasks::LabelSet data_labels(const TaskData& data, const tasks::LabelSet& model) {
  if (data.train) return tasks::learn_labels(data.task, data.train->dataset);
  if (!data.task.labels.empty()) return tasks::LabelSet(data.task.labels);
  if (data.evaluation && model.placeholders()) return tasks::learn_labels(data.task, data.evaluation->dataset);
  return {};
}

void describe(std::string& text, const char* flag, const std::optional<Split>& split) {
  if (!split) return;
  const auto& skipped = split->dataset.skipped_lines;
  if (!skipped.empty())
    text += fmt::format("{}: {} rows with a wrong number of columns left out, the first in line {}\n", flag,
                        skipped.size(), skipped.front());
  if (split->encoded.cut > 0)
    text +=
        fmt::format("{}: {} of {} examples cut to --max-seq-length\n", flag, split->encoded.cut, split->encoded.size());
  if (split->dataset.invalid_bytes > 0)
    text += fmt::format("{}: {} bytes that are no UTF-8 dropped, the first at {}\n", flag, split->dataset.invalid_bytes,
                        split->dataset.first_invalid);
}

}  // namespace

std::string TaskData::remarks() const {
  std::string text;
  describe(text, "--train", train);
  describe(text, "--eval", evaluation);
  describe(text, "--predict", prediction);
  return text;
}

TaskData read_task_data(const Options& options, const bert::Config& config, const text::Tokenizer& tokenizer) {
  TaskData data{.task = options.make_task()};
  data.train = read(data.task, options.train, true);
  data.evaluation = read(data.task, options.evaluation, true);
  data.prediction = read(data.task, options.prediction, false);
  if (data.task.kind != tasks::Kind::regression) {
    const tasks::LabelSet model(config.labels);
    data.labels = tasks::choose_labels(data_labels(data, model), model, data.train.has_value());
    if (data.labels.empty())
      fail(Failure::model,
           "{}: id2label: expected the names of the classes in config.json or a file to --train, got none",
           options.model.string());
  }
  for (std::optional<Split>* split : {&data.train, &data.evaluation, &data.prediction}) {
    if (!*split) continue;
    tasks::assign_targets(data.task, data.labels, (*split)->dataset);
    (*split)->encoded =
        tasks::encode_dataset((*split)->dataset, tokenizer, static_cast<int>(options.settings.max_seq_length));
  }
  return data;
}

}  // namespace bertrand::finetune
