// A table of a task, which may be larger than memory.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bert/tasks/task_data.h"

namespace bertrand::tasks {

/// Reads a table once, and walks through its rows again when it is known what the labels mean.
class TableRows {
 public:
  enum class Use {
    train,     ///< each row needs a label; the texts are not kept
    evaluate,  ///< each row needs a label
    predict    ///< labels are kept as they are
  };
  struct Source {
    std::string file;
    Use use = Use::train;
    OnBadRow on_bad = OnBadRow::fail;
    io::SpillPlace spill = {};
  };
  /// Reads and checks the file. Throws as read_rows and walk_examples. The task must outlive it.
  TableRows(const Task& task, Source source);

  /// Without examples.
  const Dataset& dataset() const { return dataset_; }
  /// As learn_labels has them; the choices of multiple choice, in their order.
  LabelSet labels() const {
    return task_.has_choices() ? LabelSet(dataset_.labels)
                               : learn_labels(task_, names_, dataset_.file, dataset_.bad_rows);
  }

  /// What rows are encoded with.
  struct Encoding {
    const LabelSet& labels;
    const text::Tokenizer& tokenizer;
    int max_length = 0;  ///< tokens
  };
  struct Splits {
    Split rows;
    std::optional<Split> held_out;  ///< to evaluate, if there is a share of it
  };
  /// The rows, with their targets if they need labels. Those that `part` marks, about the same share of each label (of
  /// several labels of a row the rarest counts), are apart. To be called once. Throws as targets_of, ExampleEncoder and
  /// held_out.
  Splits encode(const Encoding& encoding, const HeldOut& part = {});

 private:
  std::vector<bool> marked(const HeldOut& part) const;

  const Task& task_;
  const Source source_;
  const Table table_;
  LabelNames names_;
  Dataset dataset_;
};

}  // namespace bertrand::tasks
