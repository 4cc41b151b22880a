// The files of a fine-tuning run: read, tokenised, and their labels understood.
#pragma once
#include <optional>
#include <string>

#include "apps/finetune/options.h"
#include "bert/model/config.h"
#include "bert/tasks/encode.h"

namespace bertrand::finetune {

/// One file.
struct Split {
  tasks::Dataset dataset;
  tasks::EncodedDataset encoded;
};

struct TaskData {
  tasks::Task task;
  tasks::LabelSet labels;  ///< empty for regression
  std::optional<Split> train, evaluation, prediction;

  /// Outputs of the classifier.
  Dim outputs() const { return task.kind == tasks::Kind::regression ? 1 : static_cast<Dim>(labels.size()); }
  /// Lines for people about rows left out and bytes that were no UTF-8; "" if there is nothing to say.
  std::string warnings() const;
  /// The same about texts that were cut.
  std::string remarks() const;
};

/// Reads the files that the options name. The names of the labels come from the task, the training file or the model's
/// configuration, as tasks::choose_labels decides. Throws Failure::model for a model of another kind that is not to be
/// trained, and Failure::input where only some of the files have pairs of texts.
TaskData read_task_data(const Options& options, const bert::Config& config, const text::Tokenizer& tokenizer);

}  // namespace bertrand::finetune
