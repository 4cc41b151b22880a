// A task's examples: texts and labels of one file, each with the line it stands on.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "bert/tasks/labels.h"
#include "bert/tasks/task.h"
#include "bert/text/utf8.h"

namespace bertrand::tasks {

/// What is to be learnt: a class, a number, or a 0 or 1 per label.
using Target = std::variant<std::int32_t, float, std::vector<float>>;

struct Example {
  std::string id;  ///< of the file's id column, else the row's number from 0
  std::string text_a;
  std::optional<std::string> text_b;
  std::optional<std::string> label;  ///< as the file spells it, absent if it has none
  std::optional<Target> target;      ///< what assign_targets made of the label
  std::int64_t line = 0;
};

/// What becomes of a row that is not as it should be.
enum class OnBadRow {
  fail,  ///< the first one is an error
  keep   ///< all stand in Dataset::bad_rows
};

struct BadRow {
  std::int64_t line = 0;
  std::string id;       ///< as Example has it
  std::string message;  ///< with file and line
};

struct Dataset {
  std::string file;
  bool labelled = false;  ///< the file has a label column
  bool pairs = false;     ///< each example has two texts
  std::vector<Example> examples;
  std::vector<std::int64_t> skipped_lines;  ///< of broken rows that the task allows to be left out
  text::InvalidBytes invalid;               ///< that were dropped
  std::vector<BadRow> bad_rows = {};        ///< in the order of their lines

  /// "file:line", for messages.
  std::string where(const Example& example) const;
  /// Calls `use` for each example. Of one for which it throws Error(Failure::input), OnBadRow::keep makes a bad row.
  void for_each_example(OnBadRow on_bad, const std::function<void(Example&)>& use);
  /// The same for one example, which need not be among them: whether nothing was wrong. Bad rows stand at the end.
  bool attempt(OnBadRow on_bad, const Example& example, const std::function<void()>& use);
  /// Puts the bad rows in order of which the first `sorted` ones are. Throws the first one's message if that is all
  /// there is.
  void sort_bad_rows(std::ptrdiff_t sorted, bool nothing_else);
};

/// Reads a file's examples. `needs_label`: for training and evaluation; a file to predict may have labels or not.
/// Throws Failure::input with file and line for a bad row or an empty text, which only pairs of a named task may have,
/// and for a file without examples.
Dataset read_dataset(const Task& task, const std::string& path, bool needs_label, OnBadRow on_bad = OnBadRow::fail);

/// The same of a table at hand.
Dataset make_dataset(const Task& task, const Table& table, bool needs_label, OnBadRow on_bad = OnBadRow::fail);

/// The table of such a file.
Table read_rows(const Task& task, const std::string& path, OnBadRow on_bad, const SpillPlace& spill = {});
/// The same as make_dataset, but `use` gets the examples, and the dataset has none.
Dataset walk_examples(const Task& task, const Table& table, bool needs_label, OnBadRow on_bad,
                      const std::function<void(Example&&)>& use);

/// The labels that occur in examples.
using LabelNames = std::set<std::string, std::less<>>;
/// Adds those of one example: none of a regression.
void add_labels(const Task& task, const Example& example, LabelNames& names);
/// The task's own labels, else `names`, sorted. Empty for regression. Throws Failure::input, naming `file`, if a
/// classification has fewer than two.
LabelSet learn_labels(const Task& task, const LabelNames& names, const std::string& file);
/// The same of a whole file.
LabelSet learn_labels(const Task& task, const Dataset& training);

/// What is to be learnt of an example that has a label. Throws as assign_targets.
Target target_of(const Task& task, const LabelSet& labels, const Dataset& dataset, const Example& example);
/// Fills in every target. Throws Failure::input with file and line for a label outside `labels` or a number that is
/// none.
void assign_targets(const Task& task, const LabelSet& labels, Dataset& dataset, OnBadRow on_bad = OnBadRow::fail);

}  // namespace bertrand::tasks
