// Rows of a table as labelled examples.
#include "bert/tasks/dataset.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "bert/tasks/attempt.h"
#include "bert/tasks/choices.h"
#include "bert/tasks/table_formats.h"
#include "io/error.h"
#include "io/json.h"
#include "io/say.h"
#include "io/signals.h"

namespace bertrand::tasks {
namespace {

/// A position of a Layout as a place in the row.
std::size_t place(int position, std::size_t width) {
  return static_cast<std::size_t>(position < 0 ? static_cast<int>(width) + position : position);
}

/// The cell of a column that is read.
const std::string& read_cell(const Table& table, const Row& row, std::size_t column) {
  const std::string& cell = row.cell(column);
  if (std::ranges::count(row.nested, column) > 0)
    fail(Failure::input, "{}: {}: expected a string, a number or a list of them without the label separator, got {}",
         table.where(row), table.columns[column], io::shown(cell));
  return cell;
}

void refuse_list(const Table& table, const Row& row, std::size_t column, std::string_view message) {
  if (std::ranges::count(row.lists, column) > 0)
    fail(Failure::input, "{}: {}: {}", table.where(row), table.columns[column], message);
}

std::string text_cell(const Table& table, const Row& row, int position, std::string_view what, bool may_be_empty) {
  const std::size_t column = place(position, table.width);
  const std::string& text = read_cell(table, row, column);
  refuse_list(table, row, column, "expected a text, got a list");
  if (is_blank(text) && !may_be_empty)
    fail(Failure::input, "{}: {}: expected some text, got none", table.where(row), what);
  return text;
}

std::string id_of(const Layout& layout, const Table& table, const Row& row, std::size_t number) {
  return layout.id ? row.cell(place(*layout.id, table.width)) : std::to_string(number);
}

/// Whether a cell that says something about the label has lost bytes.
bool has_invalid_label(const Layout& layout, const Table& table, const Row& row) {
  std::vector<int> columns = layout.flags;
  if (layout.label) columns.push_back(*layout.label);
  return std::ranges::any_of(
      columns, [&](int column) { return std::ranges::count(row.invalid, place(column, table.width)) > 0; });
}

/// Whether a column of 0 and 1 has a 1.
bool has_flag(const Table& table, const Row& row, std::size_t column) {
  const std::string_view cell = trimmed_cell(read_cell(table, row, column));
  const auto is = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, cell) != words.end();
  };
  const bool flag = is({"1", "1.0", "true", "True"});
  if (!flag && !is({"0", "0.0", "false", "False"}))
    fail(Failure::input, "{}: {}: expected 0 or 1, got {}", table.where(row), table.columns[column],
         io::shown(std::string(cell)));
  return flag;
}

/// None if the cell is empty, unless that says that none of several labels applies, or if it is not UTF-8 and not
/// needed.
std::optional<std::string> label_of(const Task& task, const Table& table, const Layout& layout, const Row& row,
                                    bool needed) {
  if (!row.invalid.empty() && has_invalid_label(layout, table, row)) {
    if (needed) refuse_invalid_label(table.where(row));
    return std::nullopt;
  }
  if (!layout.flags.empty()) {
    std::vector<std::string> names;
    for (const int column : layout.flags)
      if (has_flag(table, row, static_cast<std::size_t>(column)))
        names.push_back(table.columns[static_cast<std::size_t>(column)]);
    return fmt::format("{}", fmt::join(names, task.label_separator));
  }
  const std::size_t column = place(*layout.label, table.width);
  if (task.kind != Kind::multi_label)
    refuse_list(table, row, column,
                task.has_choices() ? "expected one label, got a list"
                                   : "expected one label, got a list; hint: --kind multi-label takes several");
  const std::string label(trimmed_cell(read_cell(table, row, column)));
  for (const auto& [spelling, name] : task.label_aliases)
    if (label == spelling) return name;
  if (label.empty() && task.kind != Kind::multi_label) return std::nullopt;
  return label;
}

/// The texts of a row of which one is right, as many as there are `names` of them.
Choices choices_of(const Table& table, const Layout& layout, const Row& row, const std::vector<std::string>& names) {
  Choices choices;
  if (layout.choices.size() == 1) {
    choices = choices_of_cell(table, row, static_cast<std::size_t>(layout.choices[0]));
  } else {
    for (const int column : layout.choices) choices.texts.push_back(text_cell(table, row, column, "choice", false));
  }
  if (choices.texts.size() != names.size())
    fail(Failure::input, "{}: choices: expected {} as in the first row, got {}", table.where(row), names.size(),
         choices.texts.size());
  if (std::ranges::any_of(choices.texts, is_blank))
    fail(Failure::input, "{}: choices: expected some text in each, got none", table.where(row));
  if (choices.names.empty()) choices.names = names;
  return choices;
}

Example make_example(const Task& task, const Table& table, const Layout& layout, const Row& row, std::size_t number,
                     const std::vector<std::string>& choices, bool needs_label) {
  Example example{.line = row.line};
  if (layout.id) read_cell(table, row, place(*layout.id, table.width));  // refuses what is none
  example.id = id_of(layout, table, row, number);
  // Some of QQP's questions are empty, and everybody trains on them.
  const bool may_be_empty = !task.layouts.empty() && layout.pair;
  example.text_a = text_cell(table, row, layout.text, "text", may_be_empty);
  if (layout.pair) example.text_b = text_cell(table, row, *layout.pair, "text pair", may_be_empty);
  if (layout.is_labelled()) example.label = label_of(task, table, layout, row, needs_label);
  if (choices.empty()) return example;
  Choices own = choices_of(table, layout, row, choices);
  example.choices = std::move(own.texts);
  if (!example.label) return example;
  const auto right = chosen(*example.label, own.names);
  if (!right && needs_label)
    fail(Failure::input, "{}: label: expected one of {}, its number from 0 or its letter, got \"{}\"", table.where(row),
         in_braces(own.names), io::one_line(*example.label));
  if (right) example.label = choices[*right];
  return example;
}

/// Where an example stands, for messages.
struct Location {
  const Dataset& dataset;
  const Example& example;
  std::string where() const { return dataset.where(example); }
};

std::optional<float> finite_number(const std::string& text) {
  float value = 0;
  const char *begin = text.data(), *end = begin + text.size();
  if (text.starts_with('+') && !text.starts_with("+-")) ++begin;
  auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) {  // too large, or so small that it is 0
    value = std::strtof(begin, nullptr);
    error = std::errc();
  }
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::int32_t class_of(const std::string& name, const Task& task, const LabelSet& labels, const Location& location) {
  if (const auto index = labels.find(name)) return *index;
  const auto is_number = [](const std::string& text) { return finite_number(text).has_value(); };
  const bool may_be_score = task.kind == Kind::classification && task.labels.empty() && is_number(name) &&
                            std::ranges::all_of(labels.names(), is_number);
  fail(Failure::input, "{}: label: expected one of {}, got \"{}\"{}", location.where(), in_braces(labels.names()),
       io::one_line(name),
       may_be_score                     ? "; hint: --kind regression learns numbers"
       : task.kind == Kind::multi_label ? "; hint: --label-separator is what stands between the labels of a row"
                                        : "");
}

float number_of(const std::string& text, const Location& location) {
  const auto number = finite_number(text);
  if (!number)
    fail(Failure::input, "{}: label: expected a finite number, got \"{}\"", location.where(), io::one_line(text));
  return *number;
}

/// Refuses a table whose first row was taken for a header, and is an example.
[[noreturn]] void refuse_lost_row(const Task& task, const Table& table, const std::string& label) {
  fail(Failure::input, "{}:1: header: expected the names of columns, got the label {}; hint: {}", table.file,
       io::shown(label),
       task.layouts.empty() ? "--no-header if the first row is data, else --text-column and --label-column with names"
                            : "--task custom --no-header reads a table that has none");
}

/// A named task's header has no label of the task.
void check_header(const Task& task, const Table& table, const Layout& layout, const Row& row) {
  const auto label = layout.label ? label_of(task, table, layout, row, false) : std::nullopt;
  if (label && (task.kind == Kind::regression ? finite_number(*label).has_value()
                : task.has_choices()          ? chosen(*label, task.labels).has_value()
                                              : std::ranges::find(task.labels, *label) != task.labels.end()))
    refuse_lost_row(task, table, *label);
}

/// Whether the header of a custom table is one beyond doubt: a column was found by a name there. pandas gives columns
/// their numbers for names.
bool has_names(const Task& task, const Table& table, const Layout& layout) {
  const std::size_t text = place(layout.text, table.width), label = place(*layout.label, table.width);
  const std::string& name = table.columns[text];
  return name == task.columns.text || name == std::to_string(text) || is_usual_text(name) ||
         task.columns.label != std::to_string(label);
}

/// What the header of a custom table has for the label, if that is a label should an example have it too. "" if the
/// header has a name by which a column was found.
std::string doubtful_header(const Task& task, const Table& table, const Layout& layout) {
  const bool has_header = !table.columns.empty() && table.rows.front().columns.empty();  // JSON has names
  if (!layout.label || !has_header || task.columns.label.empty() || has_names(task, table, layout)) return "";
  const std::string label(trimmed_cell(table.columns[place(*layout.label, table.width)]));
  if (task.kind == Kind::regression && finite_number(label)) refuse_lost_row(task, table, label);
  return label;
}

/// As Dataset::columns has them; a column without a name has its number.
std::string columns_of(const Table& table, const Layout& layout) {
  const auto name = [&](int column) {
    return table.columns.empty() ? fmt::format("{}", column) : table.columns[static_cast<std::size_t>(column)];
  };
  std::string text = name(layout.text);
  if (layout.pair) text += ", " + name(*layout.pair);
  for (const int column : layout.choices) text += ", " + name(column);
  if (layout.label) text += "; " + name(*layout.label);
  std::vector<std::string> labels;
  for (const int column : layout.flags) labels.push_back(name(column));
  return labels.empty() ? text : fmt::format("{}; {}", text, in_braces(labels));
}

}  // namespace

std::vector<std::int32_t> targets_of(const Task& task, const LabelSet& labels, const Dataset& dataset,
                                     const Example& example) {
  const Location location{dataset, example};
  switch (task.kind) {
    case Kind::classification: return {class_of(*example.label, task, labels, location)};
    case Kind::regression: return {std::bit_cast<std::int32_t>(number_of(*example.label, location))};
    case Kind::multi_label: break;
  }
  std::vector<std::int32_t> flags(labels.size());
  for (const std::string& name : split_labels(*example.label, task.label_separator))
    flags[static_cast<std::size_t>(class_of(name, task, labels, location))] = 1;
  return flags;
}

std::string Dataset::where(const Example& example) const { return fmt::format("{}:{}", file, example.line); }

void Dataset::add_bad_row(OnBadRow on_bad, BadRow row) {
  if (on_bad == OnBadRow::hint)
    fail_with_hint(Error(Failure::input, row.message), "--on-bad-line report keeps the row without a prediction");
  bad_rows.push_back(std::move(row));
}

void Dataset::attempt(OnBadRow on_bad, const Example& example, const std::function<void()>& use) {
  try {
    use();
  } catch (const Error& error) {
    if (error.failure() != Failure::input || on_bad == OnBadRow::fail) throw;
    add_bad_row(on_bad, {.line = example.line, .id = example.id, .message = error.what()});
  }
}

void Dataset::sort_bad_rows(std::ptrdiff_t sorted, bool nothing_else) {
  std::ranges::inplace_merge(bad_rows, bad_rows.begin() + sorted, {}, &BadRow::line);
  if (nothing_else && !bad_rows.empty()) throw OnlyBadRows(messages_of(bad_rows));
}

Dataset walk_examples(const Task& task, const Table& table, bool needs_label, OnBadRow on_bad,
                      const std::function<void(const Example&)>& use) {
  const Layout layout = find_layout(task, table, needs_label);
  Dataset dataset{.file = table.file,
                  .labelled = layout.is_labelled(),
                  .pairs = layout.pair.has_value() || !layout.choices.empty(),
                  .skipped = table.skipped,
                  .invalid = table.invalid,
                  .quoted_line = task.layouts.empty() ? table.quoted_line : 0,
                  .bad_rows = {},
                  .columns = task.layouts.empty() ? columns_of(table, layout) : ""};
  const auto keep = [&](std::int64_t line, std::string id, std::string message) {
    dataset.add_bad_row(on_bad, {.line = line, .id = std::move(id), .message = std::move(message)});
  };
  std::size_t examples = 0;
  const auto number = [&] { return examples + dataset.bad_rows.size(); };
  std::vector<SkippedRow> skipped;
  if (on_bad != OnBadRow::fail && !task.skip_ragged_rows) skipped = std::exchange(dataset.skipped, {});
  auto next_skipped = skipped.begin();
  const auto keep_skipped_before = [&](std::int64_t line) {
    for (; next_skipped != skipped.end() && next_skipped->line < line; ++next_skipped)
      keep(next_skipped->line, layout.id ? "" : std::to_string(number()), next_skipped->message);
  };
  for (const int column : layout.flags) dataset.labels.push_back(table.columns[static_cast<std::size_t>(column)]);
  std::vector<std::string> choices;  // as the first row has them that can be read
  bool is_header = layout.header;
  const std::string doubtful = doubtful_header(task, table, layout);
  table.rows.for_each([&](const Row& row) {
    io::leave_if_requested("reading a table");
    if (std::exchange(is_header, false)) return check_header(task, table, layout, row);
    keep_skipped_before(row.line);
    if (layout.language && row.cell(place(*layout.language, table.width)) != task.language) return;
    std::optional<Example> example;
    try {
      if (choices.empty() && !layout.choices.empty()) choices = choice_names(task, table, layout, row);
      example = make_example(task, table, layout, row, number(), choices, needs_label);
      if (needs_label && !example->label)
        fail(Failure::input, "{}: label: expected one, got an empty cell", table.where(row));
    } catch (const Error& error) {
      if (error.failure() != Failure::input || on_bad == OnBadRow::fail) throw;
      keep(row.line, id_of(layout, table, row, number()), error.what());
      return;
    }
    if (!doubtful.empty() && (choices.empty() ? example->label == doubtful : chosen(doubtful, choices).has_value()))
      refuse_lost_row(task, table, doubtful);
    ++examples;
    use(*example);
  });
  keep_skipped_before(std::numeric_limits<std::int64_t>::max());
  dataset.labels.insert(dataset.labels.end(), choices.begin(), choices.end());
  if (examples == 0 && !dataset.bad_rows.empty()) throw OnlyBadRows(messages_of(dataset.bad_rows));
  if (examples == 0)
    fail(Failure::input, "{}:1: rows: expected at least one example{}, got none", table.file,
         layout.language ? fmt::format(" of language {}", task.language) : "");
  return dataset;
}

Table read_rows(const Task& task, const std::string& path, OnBadRow on_bad, const io::SpillPlace& spill) {
  const bool named = !task.layouts.empty();
  if (named && table_format(path) == TableFormat::jsonl)
    fail(Failure::usage, "{}: format: expected a table as task {} is distributed, got JSON lines; hint: --task custom",
         path, task.name);
  // A named task's first row is looked at before it is known to be a header.
  return read_table(path, {.header = !named && task.columns.header,
                           .skip_bad_rows = task.skip_ragged_rows || on_bad != OnBadRow::fail,
                           .list_separator = task.label_separator,
                           .spill = spill});
}

void add_labels(const Task& task, const Example& example, LabelNames& names) {
  if (task.kind == Kind::regression || !example.label) return;
  if (task.kind == Kind::multi_label) {
    for (std::string& name : split_labels(*example.label, task.label_separator)) names.insert(std::move(name));
  } else names.insert(*example.label);
}

LabelSet learn_labels(const Task& task, const LabelNames& names, const std::string& file, std::span<const BadRow> bad) {
  if (task.kind == Kind::regression) return {};
  if (!task.labels.empty()) return LabelSet(task.labels);
  LabelSet labels = LabelSet::sorted({names.begin(), names.end()});
  const std::set<std::string> flags = {"0", "1", "0.0", "1.0", "true", "false"};
  if (task.kind == Kind::multi_label && !labels.empty() &&
      std::ranges::all_of(labels.names(), [&](const std::string& name) { return flags.contains(name); }))
    fail(
        Failure::input,
        "{}:1: label: expected the names of the labels that a text has, got {}; hint: --label-column A,B takes columns "
        "of 0 and 1 with these names; labels that are called so need other names",
        file, in_braces(labels.names()));
  const std::size_t least = task.kind == Kind::classification ? 2 : 1;
  if (labels.size() < least && !bad.empty()) throw OnlyBadRows(messages_of(bad));
  if (labels.size() < least)
    fail(Failure::input, "{}:1: label: expected at least {} different ones in the file, got {}", file, least,
         in_braces(labels.names()));
  return labels;
}

}  // namespace bertrand::tasks
