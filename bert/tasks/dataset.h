// A task's examples: texts and labels of one file, each with the line it stands on.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "bert/tasks/example_list.h"
#include "bert/tasks/labels.h"
#include "bert/tasks/task.h"
#include "bert/text/utf8.h"

namespace bertrand::tasks {

/// What becomes of a row that is not as it should be.
enum class OnBadRow {
  fail,  ///< the first one is an error
  hint,  ///< it is an error that names --on-bad-line, which would keep it
  keep   ///< all stand in Dataset::bad_rows
};

struct BadRow {
  std::int64_t line = 0;
  std::string id;       ///< as Example has it
  std::string message;  ///< with file and line
};

struct Dataset {
  std::string file;
  bool labelled = false;                 ///< the file has a label column
  std::vector<std::string> labels = {};  ///< all choices, or those that columns are named after, in use or not
  bool pairs = false;                    ///< each example has two texts, or choices
  ExampleList examples;
  std::vector<SkippedRow> skipped;    ///< broken rows that the task allows to be left out
  text::InvalidBytes invalid;         ///< that were dropped
  std::int64_t quoted_line = 0;       ///< of a table of the user's own, as Table has it
  std::vector<BadRow> bad_rows = {};  ///< in the order of their lines
  std::string columns = {};           ///< "text, text_pair; label": those that are read of a table of the user's own

  /// "file:line", for messages.
  std::string where(const Example& example) const;
  /// Puts it at the end of the others, or throws what it says.
  void add_bad_row(OnBadRow on_bad, BadRow row);
  /// Calls `use`, of an example that need not be among them. If it throws Error(Failure::input), that is a bad row.
  void attempt(OnBadRow on_bad, const Example& example, const std::function<void()>& use);
  /// Puts the bad rows in order of which the first `sorted` ones are. Throws OnlyBadRows if that is all there is.
  void sort_bad_rows(std::ptrdiff_t sorted, bool nothing_else);
};

/// Reads the table of a task's file.
Table read_rows(const Task& task, const std::string& path, OnBadRow on_bad, const io::SpillPlace& spill = {});
/// Calls `use` for each example of a table; the dataset has none. `needs_label`: for training and evaluation; a file to
/// predict may have labels or not, and one that is not UTF-8 is none. Throws Failure::input with file and line for a
/// bad row or an empty text, which only pairs of a named task may have, for a file without examples, and for a first
/// row that is an example and not a header.
Dataset walk_examples(const Task& task, const Table& table, bool needs_label, OnBadRow on_bad,
                      const std::function<void(const Example&)>& use);

/// The labels that occur in examples.
using LabelNames = std::set<std::string, std::less<>>;
/// Adds those of one example: none of a regression.
void add_labels(const Task& task, const Example& example, LabelNames& names);
/// The task's own labels, else `names`, sorted. Empty for regression. Throws Failure::input, naming `file`, if a
/// classification has fewer than two: OnlyBadRows if there are `bad` ones.
LabelSet learn_labels(const Task& task, const LabelNames& names, const std::string& file,
                      std::span<const BadRow> bad = {});

/// What is to be learnt of an example that has a label: the number of its class, the bits of a float, or a 0 or 1 for
/// each label. Throws Failure::input with file and line for a label outside `labels` or a number that is none.
std::vector<std::int32_t> targets_of(const Task& task, const LabelSet& labels, const Dataset& dataset,
                                     const Example& example);

}  // namespace bertrand::tasks
