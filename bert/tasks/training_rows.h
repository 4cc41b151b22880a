// A table to train on, which may be larger than memory.
#pragma once
#include <optional>
#include <vector>

#include "bert/tasks/task_data.h"

namespace bertrand::tasks {

/// Reads a table once, and walks through its rows again when it is known what the labels mean. None of them is held as
/// an example.
class TrainingRows {
 public:
  /// Reads and checks files.train. Throws as read_dataset. The task and the files must outlive it.
  TrainingRows(const Task& task, const TaskFiles& files);

  /// Without examples.
  const Dataset& dataset() const { return dataset_; }
  /// As learn_labels has them.
  LabelSet labels() const { return learn_labels(task_, names_, dataset_.file); }
  /// The examples encoded, each with its targets: a label's number, the bits of a float, or a 0 or 1 per label. Those
  /// that files.held_out marks become `taken` as they are, about the same share of each label. To be called once.
  /// Throws as assign_targets, encode_dataset and held_out.
  Split encode(const LabelSet& labels, const text::Tokenizer& tokenizer, int max_length, std::optional<Split>& taken);

 private:
  std::vector<bool> marked() const;

  const Task& task_;
  const TaskFiles& files_;
  const Table table_;
  LabelNames names_;
  Dataset dataset_;
};

}  // namespace bertrand::tasks
