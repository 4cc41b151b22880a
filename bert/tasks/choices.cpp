#include "bert/tasks/choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.h"
#include "io/json.h"
#include "io/numbers.h"
#include "io/split.h"

namespace bertrand::tasks {
namespace {

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> texts_of(io::JsonReader& reader, const char* key) {
  const io::Json& list = reader.list(key);
  std::vector<std::string> texts;
  for (const io::Json& text : list) {
    if (!text.is_string()) reader.refuse(key, "a list of texts", &list);
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

}  // namespace

Choices choices_of_cell(const Table& table, const Row& row, std::size_t column) {
  const std::string& cell = row.cell(column);
  Choices choices;
  if (std::ranges::count(row.nested, column) == 0) {
    for (const std::string_view choice : io::split(cell, kChoiceSeparator)) choices.texts.emplace_back(choice);
    return choices;
  }
  const io::Json json = io::parse_json(cell, {table.where(row), Failure::input});
  io::JsonReader reader(json, {fmt::format("{}: {}", table.where(row), table.columns[column]), Failure::input});
  choices.texts = texts_of(reader, "text");
  if (reader.find("label")) choices.names = texts_of(reader, "label");
  if (!choices.names.empty() && choices.names.size() != choices.texts.size())
    reader.refuse("label", fmt::format("one for each of {} texts", choices.texts.size()), reader.find("label"));
  return choices;
}

std::vector<std::string> choice_names(const Task& task, const Table& table, const Layout& layout) {
  if (!task.labels.empty()) return task.labels;
  if (layout.choices.size() == 1) {
    const Row first = table.rows.front();
    const std::size_t count = choices_of_cell(table, first, static_cast<std::size_t>(layout.choices[0])).texts.size();
    if (count < 2)
      fail(Failure::input, "{}: --choice-columns: expected a list of at least two texts, got one", table.where(first));
    return numbered(count);
  }
  if (table.columns.empty()) return numbered(layout.choices.size());
  std::vector<std::string> names;
  for (const int column : layout.choices) names.push_back(table.columns[static_cast<std::size_t>(column)]);
  return names;
}

std::optional<std::size_t> chosen(const std::string& label, std::span<const std::string> names) {
  auto number = static_cast<std::size_t>(std::ranges::find(names, label) - names.begin());
  if (number < names.size()) return number;
  if (label.size() == 1 && label[0] >= 'A' && label[0] <= 'Z') number = static_cast<std::size_t>(label[0] - 'A');
  else if (const auto value = io::number_in<std::size_t>(label)) number = *value;
  return number < names.size() ? std::optional(number) : std::nullopt;
}

}  // namespace bertrand::tasks
