// The files of a fine-tuning run: read, tokenised, and their labels understood.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bert/tasks/encode.h"
#include "bert/tasks/held_out.h"
#include "bert/tasks/labels.h"
#include "bert/tasks/task.h"

namespace bertrand::tasks {

/// One file.
struct Split {
  Dataset dataset;  ///< of the file to train on without examples
  EncodedDataset encoded;
  std::map<std::int32_t, std::int64_t> classes = {};  ///< rows of each class; none if there are no classes to learn
};

struct TaskData {
  Task task;
  LabelSet labels;  ///< empty for regression; the choices of multiple choice
  std::optional<Split> train, evaluation, prediction;
  std::string pair_column = {};  ///< ModelOutputs has it

  std::size_t text_bytes() const;  ///< in memory, of the texts that are kept

  /// Outputs of the classifier.
  std::int64_t outputs() const {
    return task.kind == Kind::regression || task.has_choices() ? 1 : static_cast<std::int64_t>(labels.size());
  }
  /// Sequences that an example is: one for each choice.
  std::int64_t sequences() const { return task.has_choices() ? static_cast<std::int64_t>(labels.size()) : 1; }
  /// Lines for people about rows left out and bytes that were no UTF-8; "" if there is nothing to say.
  std::string warnings() const;
  /// The same about texts that were cut.
  std::string remarks() const;
  /// "x 20, y 3, … 2 more": the most frequent classes of the file to train on; "" if there are none.
  std::string rows_of_classes() const;
  /// "text, text_pair; label": the columns of the first file that are read, of a table of the user's own.
  std::string columns() const;
  /// What is wrong with the rows that were kept apart, a line each.
  std::vector<std::string> bad_rows() const;
};

/// The files of a run; each may be empty.
struct TaskFiles {
  std::filesystem::path train, evaluation, prediction;
  HeldOut held_out = {};                        ///< of train, in place of evaluation
  OnBadRow on_bad = OnBadRow::fail;             ///< of train and evaluation
  OnBadRow on_bad_prediction = OnBadRow::fail;  ///< of prediction
  io::SpillPlace spill = {};                    ///< for what is more than memory should hold of a file
};

/// What the model says of its outputs.
struct ModelOutputs {
  std::filesystem::path config;     ///< its file
  std::string problem_type;         ///< of its config.json; empty: it says nothing
  std::vector<std::string> labels;  ///< id2label in order; empty: none
  std::int64_t token_types = 2;     ///< type_vocab_size
  std::string pair_column = {};     ///< of the second texts that it was trained on; empty: it is not known
};

/// Reads the files. The names of the labels come from the task, the training file or the model, as choose_labels
/// decides. Throws Failure::model for a model of another kind that is not to be trained and for pairs of texts if the
/// model does not tell the texts apart, and Failure::input if only some of the files have pairs.
TaskData read_task_data(const Task& task, const TaskFiles& files, const ModelOutputs& model,
                        const text::Tokenizer& tokenizer, int max_length);

}  // namespace bertrand::tasks
