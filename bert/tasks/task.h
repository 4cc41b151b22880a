// What is learnt from which column: the tasks of GLUE and XNLI, and the user's own.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/table.h"
#include "io/choices.h"

namespace bertrand::tasks {

enum class Kind {
  classification,  ///< one of n classes; cross-entropy
  regression,      ///< a number; mean squared error
  multi_label      ///< any of n labels; binary cross-entropy
};

/// As --kind has them.
const io::Choices<Kind>& kinds();
/// As config.json's problem_type has them.
const io::Choices<Kind>& problem_types();

/// f1 is the F1 of class 1 if there are two classes, else the mean of the classes' F1.
enum class Metric { accuracy, f1, macro_f1, micro_f1, matthews, pearson, spearman };

/// accuracy, f1, …: the key of metrics.jsonl and eval_results.txt without its eval_.
std::string_view metric_name(Metric metric);
/// Those that there are of a kind.
std::span<const Metric> metrics_of(Kind kind);

/// Where the fields stand in one sort of file; a negative number counts from the end of the row.
struct Layout {
  std::size_t min_columns = 0, max_columns = 0;  ///< of the files it is for
  std::string_view first_cell = "";              ///< what the file must begin with; "" is anything
  bool header = true;
  std::optional<int> id;
  int text = 0;
  std::optional<int> pair, label, language;
  std::vector<int> flags = {};  ///< in place of `label`: columns of 0 and 1, each of the label that it is named after
  /// Columns of the texts of which one is right, or one of lists of them. The model reads `text` with each; a `pair` is
  /// what each begins with.
  std::vector<int> choices = {};

  bool is_labelled() const { return label || !flags.empty(); }
};

/// The user's own columns, by name or by number from 0; an empty one is looked for under the usual names, in capitals
/// or not. `label` of several labels may be many, between them the separator of labels: columns of 0 and 1.
/// `choices` are several, between commas, or one whose values are lists; empty: all rows have the same classes.
struct CustomColumns {
  std::string text, pair, choices, label, id;
  bool header = true;
};

struct Task {
  std::string name;
  Kind kind = Kind::classification;
  std::vector<std::string> labels;    ///< in order; empty if the training file teaches them
  std::int32_t positive = 1;          ///< the class of two that F1 is of, by its number in the model
  std::vector<Metric> metrics;        ///< in the order they are printed; their mean picks the best model
  std::vector<Layout> layouts;        ///< the first that fits a file is taken; none for a custom task
  CustomColumns columns;              ///< of a custom task
  std::string label_separator = ",";  ///< between the labels of a multi-label cell
  std::vector<std::pair<std::string, std::string>> label_aliases;  ///< another spelling, and its label
  std::string language;                                            ///< XNLI: the rows of an evaluation file to read
  bool skip_ragged_rows = false;  ///< QQP's train.tsv has a few broken rows that everybody skips

  /// Whether the classes of a row are texts of its own: multiple choice.
  bool has_choices() const { return !columns.choices.empty() || (!layouts.empty() && !layouts[0].choices.empty()); }
};

/// cola sst2 mrpc stsb rte qnli wnli mnli qqp xnli, with the columns of google-research/bert's run_classifier.py and,
/// beyond its four tasks, of transformers' GLUE processors; and swag, whose columns are those of the SWAG data set.
/// Throws Failure::usage for another name.
Task named_task(std::string_view name);

/// The names that named_task knows.
std::vector<std::string> task_names();

struct CustomOptions {
  Kind kind = Kind::classification;
  CustomColumns columns;
  std::string label_separator = ",";
};
/// Throws Failure::usage if nothing separates labels.
Task custom_task(const CustomOptions& options);

/// Whether a column of this name, in capitals or not, is taken for a text.
bool is_usual_text(std::string_view column);

/// Where `table`'s fields stand for this task, as numbers from 0. Tables of a named task are read without a header.
/// Throws Failure::input naming the file if no layout fits or a column is missing or there twice, and Failure::usage if
/// one is both text and label, or both texts; a missing label column is an error only if `needs_label`.
Layout find_layout(const Task& task, const Table& table, bool needs_label);

}  // namespace bertrand::tasks
