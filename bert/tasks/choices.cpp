#include "bert/tasks/choices.h"

#include <algorithm>

#include "io/error.h"
#include "io/numbers.h"
#include "io/split.h"

namespace bertrand::tasks {
namespace {

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

std::vector<std::string> split_choices(std::string_view cell) {
  std::vector<std::string> choices;
  for (const std::string_view choice : io::split(cell, kChoiceSeparator)) choices.emplace_back(choice);
  return choices;
}

std::vector<std::string> choice_names(const Task& task, const Table& table, const Layout& layout) {
  if (!task.labels.empty()) return task.labels;
  if (layout.choices.size() == 1) {
    const Row first = table.rows.front();
    const std::size_t count = split_choices(first.cell(static_cast<std::size_t>(layout.choices[0]))).size();
    if (count < 2)
      fail(Failure::input, "{}: --choice-columns: expected a list of at least two texts, got one", table.where(first));
    return numbered(count);
  }
  if (table.columns.empty()) return numbered(layout.choices.size());
  std::vector<std::string> names;
  for (const int column : layout.choices) names.push_back(table.columns[static_cast<std::size_t>(column)]);
  return names;
}

std::optional<std::string> chosen(const std::string& label, std::span<const std::string> names) {
  if (std::ranges::find(names, label) != names.end()) return label;
  std::size_t number = names.size();
  if (label.size() == 1 && label[0] >= 'A' && label[0] <= 'Z') number = static_cast<std::size_t>(label[0] - 'A');
  else if (const auto value = io::number_in<std::size_t>(label)) number = *value;
  if (number >= names.size()) return std::nullopt;
  return names[number];
}

}  // namespace bertrand::tasks
