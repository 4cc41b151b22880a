// The table of named tasks, and how their columns are found.
#include "bert/tasks/task.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "bert/tasks/attempt.h"
#include "bert/tasks/choices.h"
#include "bert/tasks/labels.h"
#include "bert/tasks/table_formats.h"
#include "bert/text/utf8.h"
#include "io/ascii.h"
#include "io/error.h"
#include "io/json.h"
#include "io/nearest_name.h"
#include "io/split.h"

namespace bertrand::tasks {
namespace {

constexpr std::size_t kAnyMore = 1000;  // columns

const std::vector<std::string> kTruthValues = {"0", "1"};
const std::vector<std::string> kEntailment = {"entailment", "not_entailment"};
const std::vector<int> kEndings = {7, 8, 9, 10}, kEndingsOfHub = {6, 7, 8, 9};
const std::vector<std::string> kInference = {"contradiction", "entailment", "neutral"};

/// Two sentences in columns 1 and 2 after an index, the label in column 3, which the test file lacks. Other tables of
/// GLUE have as many columns and no index.
std::vector<Layout> pair_layouts() {
  return {{.min_columns = 4, .max_columns = 4, .first_cell = "index", .id = 0, .text = 1, .pair = 2, .label = 3},
          {.min_columns = 3, .max_columns = 3, .first_cell = "index", .id = 0, .text = 1, .pair = 2}};
}

// A test file comes before the training file if only its first cell tells them apart.
std::vector<Task> make_named_tasks() {
  return {
      {.name = "cola",
       .labels = kTruthValues,
       .metrics = {Metric::matthews, Metric::accuracy},
       .layouts = {{.min_columns = 4, .max_columns = 4, .header = false, .text = 3, .label = 1},
                   {.min_columns = 2, .max_columns = 2, .id = 0, .text = 1}}},
      {.name = "sst2",
       .labels = kTruthValues,
       .metrics = {Metric::accuracy},
       .layouts = {{.min_columns = 2, .max_columns = 2, .first_cell = "index", .id = 0, .text = 1},
                   {.min_columns = 2, .max_columns = 2, .text = 0, .label = 1}}},
      {.name = "mrpc",
       .labels = kTruthValues,
       .metrics = {Metric::accuracy, Metric::f1},
       .layouts = {{.min_columns = 5, .max_columns = 5, .first_cell = "index", .id = 0, .text = 3, .pair = 4},
                   {.min_columns = 5, .max_columns = 5, .text = 3, .pair = 4, .label = 0}}},
      {.name = "stsb",
       .kind = Kind::regression,
       .metrics = {Metric::pearson, Metric::spearman},
       .layouts = {{.min_columns = 10, .max_columns = 10, .id = 0, .text = 7, .pair = 8, .label = -1},
                   {.min_columns = 9, .max_columns = 9, .id = 0, .text = 7, .pair = 8}}},
      {.name = "rte", .labels = kEntailment, .metrics = {Metric::accuracy}, .layouts = pair_layouts()},
      {.name = "qnli", .labels = kEntailment, .metrics = {Metric::accuracy}, .layouts = pair_layouts()},
      {.name = "wnli", .labels = kTruthValues, .metrics = {Metric::accuracy}, .layouts = pair_layouts()},
      {.name = "mnli",
       .labels = kInference,
       .metrics = {Metric::accuracy},
       .layouts = {{.min_columns = 11, .max_columns = kAnyMore, .id = 0, .text = 8, .pair = 9, .label = -1},
                   {.min_columns = 10, .max_columns = 10, .id = 0, .text = 8, .pair = 9}}},
      {.name = "qqp",
       .labels = kTruthValues,
       .metrics = {Metric::accuracy, Metric::f1},
       .layouts = {{.min_columns = 6, .max_columns = 6, .id = 0, .text = 3, .pair = 4, .label = 5},
                   {.min_columns = 3, .max_columns = 3, .id = 0, .text = 1, .pair = 2}},
       .skip_ragged_rows = true},
      {.name = "xnli",
       .labels = kInference,
       .metrics = {Metric::accuracy},
       .layouts = {{.min_columns = 3, .max_columns = 3, .text = 0, .pair = 1, .label = 2},
                   {.min_columns = 8, .max_columns = kAnyMore, .text = 6, .pair = 7, .label = 1, .language = 0}},
       .label_aliases = {{"contradictory", "contradiction"}},
       .language = "zh"},
      {.name = "swag",
       .labels = {"ending0", "ending1", "ending2", "ending3"},
       .metrics = {Metric::accuracy},
       .layouts =
           {{.min_columns = 12, .max_columns = 12, .id = 0, .text = 4, .pair = 5, .label = 11, .choices = kEndings},
            {.min_columns = 11,
             .max_columns = 11,
             .first_cell = "video-id",
             .text = 3,
             .pair = 4,
             .label = 10,
             .choices = kEndingsOfHub},
            {.min_columns = 11, .max_columns = 11, .id = 0, .text = 4, .pair = 5, .choices = kEndings}}},
  };
}

const std::vector<Task>& named_tasks() {
  static const std::vector<Task> tasks = make_named_tasks();
  return tasks;
}

using Names = std::span<const std::string_view>;
constexpr std::array<std::string_view, 7> kUsualTexts = {"text",   "question",  "sentence", "sentence1",
                                                         "text_a", "question1", "premise"};
constexpr std::array<std::string_view, 8> kUsualLabels = {"label",  "labels", "class", "category",
                                                          "intent", "target", "score", "gold_label"};
/// Of the right one among choices.
constexpr std::array<std::string_view, 2> kUsualAnswers = {"answer", "answerkey"};
constexpr std::array<std::string_view, 3> kUsualIds = {"id", "idx", "index"};

/// Columns that go with a usual first text.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kUsualPairs = {{
    {"text", "text_pair"},
    {"sentence1", "sentence2"},
    {"text_a", "text_b"},
    {"question1", "question2"},
    {"premise", "hypothesis"},
    {"question", "sentence"},
    {"question", "passage"},
}};

/// A column of one of the names, as the table spells it: as here if there is one, else with other capitals.
std::string_view first_present(const Table& table, Names names) {
  for (const bool any_case : {false, true})
    for (const std::string_view name : names)
      for (const std::string& column : table.columns)
        if ((any_case ? io::ascii_lower(column) : column) == name) return column;
  return "";
}

/// The column that goes with `text`, if the table has it.
std::optional<int> partner(const Table& table, std::string_view text) {
  for (const auto& [first, second] : kUsualPairs)
    if (first == io::ascii_lower(std::string(text)))
      if (const auto column = table.find_column(first_present(table, {&second, 1}))) return static_cast<int>(*column);
  return std::nullopt;
}

std::string describe_columns(const Table& table) {
  if (table.columns.empty()) return fmt::format("{} columns without names", table.width);
  return in_braces(table.columns) + hint_of_separator(table);
}

int required_column(const Table& table, std::string_view name, std::string_view flag) {
  const auto column = table.find_column(name);
  if (!column)
    fail(Failure::input, "{}:1: {}: expected a column \"{}\", got {}{}", table.file, flag, name,
         describe_columns(table), io::did_you_mean(std::string(name), table.columns));
  return static_cast<int>(*column);
}

/// Whether a flag has this column for a text.
bool is_text_by_flag(const Task& task, const Table& table, std::size_t column) {
  return table.find_column(task.columns.text) == column || table.find_column(task.columns.pair) == column;
}

std::string_view usual_label(const Task& task, const Table& table) {
  const std::string_view name = first_present(table, kUsualLabels);
  return name.empty() && task.has_choices() ? first_present(table, kUsualAnswers) : name;
}

std::optional<int> label_column(const Task& task, const Table& table, bool needed) {
  const std::string_view name = task.columns.label.empty() ? usual_label(task, table) : task.columns.label;
  const auto column = table.find_column(name);
  // A file to predict may have its text under the usual name of a label.
  if (column && !needed && task.columns.label.empty() && is_text_by_flag(task, table, *column)) return std::nullopt;
  if (column) return static_cast<int>(*column);
  if (needed)
    fail(Failure::input, "{}:1: --label-column: expected {}, got {}", table.file,
         task.columns.label.empty() ? fmt::format("a column named {} or the flag", fmt::join(kUsualLabels, ", "))
                                    : fmt::format("a column \"{}\"", name),
         describe_columns(table));
  return std::nullopt;
}

/// The names are labels, no two of which may become one.
void check_flag_names(const Task& task, const Table& table, const std::vector<int>& flags) {
  std::set<std::string> names;
  for (const int column : flags) {
    const auto place = static_cast<std::size_t>(column);
    const std::string& name = table.columns[place];
    if (std::ranges::count(table.invalid_columns, place) > 0) refuse_invalid_label(table.file + ":1");
    if (name.find(task.label_separator) != std::string::npos)
      fail(Failure::input, "{}:1: --label-column: expected names without the label separator, got {}", table.file,
           io::shown(name));
    if (!names.insert(name).second)
      fail(Failure::input, "{}:1: --label-column: expected columns with different names, got {} twice; hint: {}",
           table.file, io::shown(name), "name each after its label");
  }
}

/// The columns of 0 and 1 that stand for labels, if --label-column names several.
std::vector<int> flag_columns(const Task& task, const Table& table, bool needed) {
  const std::string& names = task.columns.label;
  const std::vector<std::string> each = split_labels(names, task.label_separator);
  if (task.kind != Kind::multi_label || each.size() < 2 || table.find_column(names)) return {};
  std::vector<int> columns;
  for (const std::string& name : each) {
    const auto column = table.find_column(name);
    if (!column && !needed) return {};  // a test file has none of them
    columns.push_back(required_column(table, name, "--label-column"));
    if (table.columns.empty())
      fail(Failure::usage, "--label-column: expected one for a table without a header, got {}", names);
  }
  if (needed) check_flag_names(task, table, columns);
  return columns;
}

/// The columns of --choice-columns.
std::vector<int> choice_columns(const Task& task, const Table& table) {
  std::vector<int> columns;
  if (!task.has_choices()) return columns;
  for (const std::string& name : io::comma_list(task.columns.choices))
    columns.push_back(required_column(table, name, "--choice-columns"));
  return columns;
}

/// The only column that is neither label nor id, nor a choice.
std::optional<int> only_other_column(const Table& table, const Layout& layout) {
  std::optional<int> found;
  for (int column = 0; column < static_cast<int>(table.width); ++column) {
    if (layout.label == column || layout.id == column || std::ranges::count(layout.flags, column) > 0 ||
        std::ranges::count(layout.choices, column) > 0)
      continue;
    if (found) return std::nullopt;
    found = column;
  }
  return found;
}

void refuse_same_column(const Table& table, std::optional<int> a, std::optional<int> b, std::string_view flags) {
  if (a && a == b)
    fail(Failure::usage, "{}: expected different columns, got {} of {} for both", flags,
         table.columns.empty() ? fmt::format("{}", *a) : table.columns[static_cast<std::size_t>(*a)], table.file);
}

Layout custom_layout(const Task& task, const Table& table, bool needs_label) {
  const CustomColumns& columns = task.columns;
  Layout layout{.min_columns = table.width, .max_columns = table.width, .header = false};
  layout.flags = flag_columns(task, table, needs_label);
  if (layout.flags.empty()) layout.label = label_column(task, table, needs_label);
  const std::string_view id = columns.id.empty() ? first_present(table, kUsualIds) : columns.id;
  if (!id.empty()) layout.id = required_column(table, id, "--id-column");
  layout.choices = choice_columns(task, table);

  const std::string_view text = columns.text.empty() ? first_present(table, kUsualTexts) : columns.text;
  if (!text.empty()) {
    layout.text = required_column(table, text, "--text-column");
  } else if (const auto other = only_other_column(table, layout)) {
    layout.text = *other;
  } else {
    fail(Failure::input, "{}:1: --text-column: expected a column named {} or the flag, got {}", table.file,
         fmt::join(kUsualTexts, ", "), describe_columns(table));
  }
  if (!columns.pair.empty()) {
    layout.pair = required_column(table, columns.pair, "--text-pair-column");
  } else if (columns.text.empty() && layout.choices.empty()) {
    layout.pair = partner(table, text);
  }
  std::vector<std::optional<int>> labels(layout.flags.begin(), layout.flags.end());
  labels.push_back(layout.label);
  for (const std::optional<int> label : labels) {
    refuse_same_column(table, layout.text, label, "--text-column, --label-column");
    refuse_same_column(table, layout.pair, label, "--text-pair-column, --label-column");
  }
  refuse_same_column(table, layout.text, layout.pair, "--text-column, --text-pair-column");
  std::vector<std::optional<int>> read = {layout.text, layout.pair, layout.label};
  for (const int choice : layout.choices) {
    for (const std::optional<int> column : read) refuse_same_column(table, choice, column, "--choice-columns");
    read.push_back(choice);
  }
  return layout;
}

bool has_width_of(const Layout& layout, const Table& table) {
  return table.width >= layout.min_columns && table.width <= layout.max_columns;
}

bool fits(const Layout& layout, const Table& table) {
  return has_width_of(layout, table) && (layout.first_cell.empty() || table.rows.front().cell(0) == layout.first_cell);
}

std::string widths(const Task& task) {
  std::vector<std::string> widths;
  for (const Layout& layout : task.layouts) {
    const std::string width =
        fmt::format("{}{}", layout.min_columns, layout.max_columns == kAnyMore ? " and more" : "");
    if (std::find(widths.begin(), widths.end(), width) == widths.end()) widths.push_back(width);
  }
  return fmt::format("{}", fmt::join(widths, " or "));
}

}  // namespace

const io::Choices<Kind>& kinds() {
  static const io::Choices<Kind> choices{
      {"classification", Kind::classification}, {"regression", Kind::regression}, {"multi-label", Kind::multi_label}};
  return choices;
}

const io::Choices<Kind>& problem_types() {
  static const io::Choices<Kind> choices{{"single_label_classification", Kind::classification},
                                         {"regression", Kind::regression},
                                         {"multi_label_classification", Kind::multi_label}};
  return choices;
}

std::string_view metric_name(Metric metric) {
  switch (metric) {
    case Metric::accuracy: return "accuracy";
    case Metric::f1: return "f1";
    case Metric::macro_f1: return "macro_f1";
    case Metric::micro_f1: return "micro_f1";
    case Metric::matthews: return "matthews";
    case Metric::pearson: return "pearson";
    case Metric::spearman: return "spearman";
  }
  fail(Failure::bug, "metric_name: no such metric");
}

std::span<const Metric> metrics_of(Kind kind) {
  static constexpr Metric kOfClasses[] = {Metric::accuracy, Metric::f1, Metric::macro_f1, Metric::matthews},
                          kOfNumbers[] = {Metric::pearson, Metric::spearman},
                          kOfLabels[] = {Metric::accuracy, Metric::micro_f1, Metric::macro_f1};
  switch (kind) {
    case Kind::classification: return kOfClasses;
    case Kind::regression: return kOfNumbers;
    case Kind::multi_label: return kOfLabels;
  }
  fail(Failure::bug, "metrics_of: no such kind");
}

Task named_task(std::string_view name) {
  for (const Task& task : named_tasks())
    if (task.name == name) return task;
  fail(Failure::usage, "--task: expected one of {} or custom, got {}{}", fmt::join(task_names(), ", "), name,
       io::did_you_mean(name, task_names()));
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const Task& task : named_tasks()) names.push_back(task.name);
  return names;
}

Task custom_task(const CustomOptions& options) {
  if (options.label_separator.empty()) fail(Failure::usage, "--label-separator: expected some text, got none");
  if (options.kind != Kind::multi_label && options.label_separator != CustomOptions().label_separator)
    fail(Failure::usage, "--label-separator: expected with --kind multi-label, got another kind");
  // What is no UTF-8 has been left out of the table.
  if (std::string valid; text::drop_invalid_utf8(options.label_separator, valid).count > 0)
    fail(Failure::usage, "--label-separator: expected UTF-8, got \"{}\"", options.label_separator);
  Task task{
      .name = "custom", .kind = options.kind, .columns = options.columns, .label_separator = options.label_separator};
  if (task.has_choices()) {
    if (options.kind != Kind::classification)
      fail(Failure::usage, "--choice-columns: expected with --kind classification, got another kind");
    task.label_separator = std::string(1, kChoiceSeparator);
    task.metrics = {Metric::accuracy};
    return task;
  }
  switch (options.kind) {
    case Kind::classification: task.metrics = {Metric::accuracy, Metric::f1}; break;
    case Kind::regression: task.metrics = {Metric::pearson, Metric::spearman}; break;
    case Kind::multi_label: task.metrics = {Metric::micro_f1, Metric::macro_f1, Metric::accuracy}; break;
  }
  return task;
}

bool is_usual_text(std::string_view column) {
  return std::ranges::find(kUsualTexts, io::ascii_lower(std::string(column))) != kUsualTexts.end();
}

Layout find_layout(const Task& task, const Table& table, bool needs_label) {
  if (table.rows.empty() && !table.skipped.empty()) throw OnlyBadRows(messages_of(table.skipped));
  if (table.rows.empty()) fail(Failure::input, "{}:1: rows: expected at least one example, got none", table.file);
  if (task.layouts.empty()) return custom_layout(task, table, needs_label);
  const auto layout =
      std::find_if(task.layouts.begin(), task.layouts.end(), [&](const Layout& l) { return fits(l, table); });
  const bool has_width = std::ranges::any_of(task.layouts, [&](const Layout& l) { return has_width_of(l, table); });
  if (layout == task.layouts.end() && has_width)
    fail(Failure::input,
         "{}:1: columns: expected those of GLUE for task {}, the first of them index, got {}; hint: "
         "--task custom reads other tables",
         table.file, task.name, io::shown(table.rows.front().cell(0)));
  if (layout == task.layouts.end())
    fail(Failure::input, "{}:1: columns: expected {} for task {}, got {}; hint: --task custom reads other tables",
         table.file, widths(task), task.name, table.width);
  if (needs_label && !layout->label)
    fail(Failure::input, "{}:1: label: expected a file of task {} with labels, got its test form without them",
         table.file, task.name);
  return *layout;
}

}  // namespace bertrand::tasks
