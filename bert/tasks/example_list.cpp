// An example is a row of four columns, of which the last two may be missing, and one for each choice.
#include "bert/tasks/example_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace bertrand::tasks {
namespace {

/// The columns of the row that an example becomes.
struct ExampleColumn {
  static constexpr std::size_t id = 0, text_a = 1, text_b = 2, label = 3, choices = 4;
};

std::optional<std::string> cell_if_any(const Row& row, std::size_t column) {
  if (!std::ranges::binary_search(row.columns, column)) return std::nullopt;
  return row.cell(column);
}

}  // namespace

std::optional<std::string> Example::second_text() const {
  if (choices.empty()) return text_b;
  return fmt::format("{}{}{}", text_b.value_or(""), text_b ? " | " : "", fmt::join(choices, " | "));
}

ExampleList::ExampleList(std::initializer_list<Example> examples) {
  for (const Example& example : examples) push_back(example);
}

void ExampleList::push_back(const Example& example) {
  Row row{.cells = {example.id, example.text_a},
          .columns = {ExampleColumn::id, ExampleColumn::text_a},
          .line = example.line};
  const auto add = [&](std::size_t column, const std::optional<std::string>& cell) {
    if (!cell) return;
    row.cells.push_back(*cell);
    row.columns.push_back(column);
  };
  add(ExampleColumn::text_b, example.text_b);
  add(ExampleColumn::label, example.label);
  for (std::size_t i = 0; i < example.choices.size(); ++i) add(ExampleColumn::choices + i, example.choices[i]);
  rows_.add(row);
}

void ExampleList::for_each(const std::function<void(std::size_t number, const Example&)>& use) const {
  std::size_t number = 0;
  rows_.for_each([&](const Row& row) {
    const auto choices = std::ranges::lower_bound(row.columns, ExampleColumn::choices) - row.columns.begin();
    use(number++, {.id = row.cell(ExampleColumn::id),
                   .text_a = row.cell(ExampleColumn::text_a),
                   .text_b = cell_if_any(row, ExampleColumn::text_b),
                   .choices = {row.cells.begin() + choices, row.cells.end()},
                   .label = cell_if_any(row, ExampleColumn::label),
                   .line = row.line});
  });
}

}  // namespace bertrand::tasks
