// Rows of a table as labelled examples.
#include "bert/tasks/dataset.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "io/error.h"

namespace bertrand::tasks {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// A position of a Layout as a place in the row.
std::size_t place(int position, std::size_t width) {
  return static_cast<std::size_t>(position < 0 ? static_cast<int>(width) + position : position);
}

void refuse_list(const Table& table, const Row& row, std::size_t column, std::string_view message) {
  if (std::ranges::count(row.lists, column) > 0)
    fail(Failure::input, "{}: {}: {}", table.where(row), table.columns[column], message);
}

std::string text_cell(const Table& table, const Row& row, int position, std::string_view what, bool may_be_empty) {
  const std::size_t column = place(position, table.width);
  refuse_list(table, row, column, "expected a text, got a list");
  const std::string& text = row.cell(column);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos && !may_be_empty)
    fail(Failure::input, "{}: {}: expected some text, got none", table.where(row), what);
  return text;
}

std::string id_of(const Layout& layout, const Table& table, const Row& row, std::size_t number) {
  return layout.id ? row.cell(place(*layout.id, table.width)) : std::to_string(number);
}

Example make_example(const Task& task, const Table& table, const Layout& layout, const Row& row, std::size_t number) {
  Example example{.line = row.line};
  example.id = id_of(layout, table, row, number);
  // Some of QQP's questions are empty, and everybody trains on them.
  const bool may_be_empty = !task.layouts.empty() && layout.pair;
  example.text_a = text_cell(table, row, layout.text, "text", may_be_empty);
  if (layout.pair) example.text_b = text_cell(table, row, *layout.pair, "text pair", may_be_empty);
  if (layout.label) {
    if (task.kind != Kind::multi_label)
      refuse_list(table, row, place(*layout.label, table.width),
                  "expected one label, got a list; hint: --kind multi-label takes several");
    const std::string_view label = trimmed(row.cell(place(*layout.label, table.width)));
    // An empty cell is a missing label, unless it says that none of several applies.
    if (!label.empty() || task.kind == Kind::multi_label) example.label = label;
    for (const auto& [spelling, name] : task.label_aliases)
      if (example.label == spelling) example.label = name;
  }
  return example;
}

std::vector<std::string> split_labels(const std::string& cell, const std::string& separator) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= cell.size();) {
    const std::size_t end = separator.empty() ? cell.size() : std::min(cell.find(separator, begin), cell.size());
    const std::string_view name = trimmed(std::string_view(cell).substr(begin, end - begin));
    if (!name.empty()) names.emplace_back(name);
    begin = end + std::max<std::size_t>(separator.size(), 1);
  }
  return names;
}

std::int32_t class_of(const std::string& name, const LabelSet& labels, const std::string& where) {
  const auto index = labels.find(name);
  if (!index) fail(Failure::input, "{}: label: expected one of {}, got \"{}\"", where, in_braces(labels.names()), name);
  return *index;
}

float number_of(const std::string& text, const std::string& where) {
  float value = 0;
  const char *begin = text.data(), *end = begin + text.size();
  if (text.starts_with('+') && !text.starts_with("+-")) ++begin;
  auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) {  // too large, or so small that it is 0
    value = std::strtof(begin, nullptr);
    error = std::errc();
  }
  if (error != std::errc() || stop != end || !std::isfinite(value))
    fail(Failure::input, "{}: label: expected a finite number, got \"{}\"", where, text);
  return value;
}

Target target_of(const Task& task, const LabelSet& labels, const std::string& label, const std::string& where) {
  switch (task.kind) {
    case Kind::classification: return class_of(label, labels, where);
    case Kind::regression: return number_of(label, where);
    case Kind::multi_label: break;
  }
  std::vector<float> flags(labels.size());
  for (const std::string& name : split_labels(label, task.label_separator))
    flags[static_cast<std::size_t>(class_of(name, labels, where))] = 1;
  return flags;
}

}  // namespace

std::string Dataset::where(const Example& example) const { return fmt::format("{}:{}", file, example.line); }

void Dataset::for_each_example(OnBadRow on_bad, const std::function<void(Example&)>& use) {
  std::vector<bool> bad(examples.size());
  const auto before = std::ssize(bad_rows);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    try {
      use(examples[i]);
    } catch (const Error& error) {
      if (error.failure() != Failure::input || on_bad == OnBadRow::fail) throw;
      bad[i] = true;
      bad_rows.push_back({.line = examples[i].line, .id = examples[i].id, .message = error.what()});
    }
  }
  if (std::ssize(bad_rows) == before) return;
  take_marked(examples, bad);
  std::inplace_merge(bad_rows.begin(), bad_rows.begin() + before, bad_rows.end(),
                     [](const BadRow& a, const BadRow& b) { return a.line < b.line; });
  if (examples.empty()) fail(Failure::input, "{}", bad_rows.front().message);  // nothing is left to work with
}

Dataset make_dataset(const Task& task, const Table& table, bool needs_label, OnBadRow on_bad) {
  const Layout layout = find_layout(task, table, needs_label);
  Dataset dataset{.file = table.file,
                  .labelled = layout.label.has_value(),
                  .skipped_lines = table.skipped_lines,
                  .invalid = table.invalid};
  const auto keep = [&](std::int64_t line, std::string id, std::string message) {
    dataset.bad_rows.push_back({.line = line, .id = std::move(id), .message = std::move(message)});
  };
  const auto number = [&] { return dataset.examples.size() + dataset.bad_rows.size(); };
  std::vector<std::int64_t> ragged;
  if (on_bad == OnBadRow::keep && !task.skip_ragged_rows) ragged = std::exchange(dataset.skipped_lines, {});
  auto next_ragged = ragged.begin();
  const auto keep_ragged_before = [&](std::int64_t line) {
    for (; next_ragged != ragged.end() && *next_ragged < line; ++next_ragged)
      keep(*next_ragged, layout.id ? "" : std::to_string(number()),
           fmt::format("{}:{}: columns: expected {} as in line 1, got another number", table.file, *next_ragged,
                       table.width));
  };
  for (std::size_t r = layout.header ? 1 : 0; r < table.rows.size(); ++r) {
    const Row& row = table.rows[r];
    keep_ragged_before(row.line);
    if (layout.language && row.cell(place(*layout.language, table.width)) != task.language) continue;
    try {
      Example example = make_example(task, table, layout, row, number());
      if (needs_label && !example.label)
        fail(Failure::input, "{}: label: expected one, got an empty cell", table.where(row));
      dataset.examples.push_back(std::move(example));
    } catch (const Error& error) {
      if (error.failure() != Failure::input) throw;
      if (on_bad == OnBadRow::fail && !needs_label)
        fail_with_hint(error, "--on-bad-line report keeps the row without a prediction");
      if (on_bad == OnBadRow::fail) throw;
      keep(row.line, id_of(layout, table, row, number()), error.what());
    }
  }
  keep_ragged_before(std::numeric_limits<std::int64_t>::max());
  if (dataset.examples.empty() && !dataset.bad_rows.empty())
    fail(Failure::input, "{}", dataset.bad_rows.front().message);
  if (dataset.examples.empty())
    fail(Failure::input, "{}:1: rows: expected at least one example{}, got none", table.file,
         layout.language ? fmt::format(" of language {}", task.language) : "");
  return dataset;
}

Dataset read_dataset(const Task& task, const std::string& path, bool needs_label, OnBadRow on_bad) {
  const bool named = !task.layouts.empty();
  if (named && table_format(path) == TableFormat::jsonl)
    fail(Failure::usage, "{}: format: expected a table as task {} is distributed, got JSON lines; hint: --task custom",
         path, task.name);
  // A named task's first row is looked at before it is known to be a header.
  return make_dataset(task,
                      read_table(path, {.header = !named && task.columns.header,
                                        .skip_ragged_rows = task.skip_ragged_rows || on_bad == OnBadRow::keep,
                                        .list_separator = task.label_separator}),
                      needs_label, on_bad);
}

LabelSet learn_labels(const Task& task, const Dataset& training) {
  if (task.kind == Kind::regression) return {};
  if (!task.labels.empty()) return LabelSet(task.labels);
  std::vector<std::string> names;
  for (const Example& example : training.examples) {
    if (!example.label) continue;
    if (task.kind == Kind::classification) names.push_back(*example.label);
    else
      for (std::string& name : split_labels(*example.label, task.label_separator)) names.push_back(std::move(name));
  }
  LabelSet labels = LabelSet::sorted(std::move(names));
  const std::size_t least = task.kind == Kind::classification ? 2 : 1;
  if (labels.size() < least)
    fail(Failure::input, "{}:1: label: expected at least {} different ones in the file, got {}", training.file, least,
         in_braces(labels.names()));
  return labels;
}

void assign_targets(const Task& task, const LabelSet& labels, Dataset& dataset, OnBadRow on_bad) {
  dataset.for_each_example(on_bad, [&](Example& example) {
    if (example.label) example.target = target_of(task, labels, *example.label, dataset.where(example));
  });
}

Dataset hold_out(const Task& task, Dataset& dataset, const HeldOut& part) {
  std::vector<std::string_view> groups;
  for (const Example& example : dataset.examples)
    groups.push_back(task.kind == Kind::classification && example.label ? std::string_view(*example.label) : "");
  const std::vector<bool> marked = held_out(groups, part, dataset.file);
  return {.file = dataset.file, .labelled = dataset.labelled, .examples = take_marked(dataset.examples, marked)};
}

}  // namespace bertrand::tasks
