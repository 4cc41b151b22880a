#include "bert/tasks/choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "bert/tasks/labels.h"
#include "io/error.h"
#include "io/json.h"
#include "io/numbers.h"
#include "io/split.h"

namespace bertrand::tasks {
namespace {

bool is_letter(const std::string& text) { return text.size() == 1 && text[0] >= 'A' && text[0] <= 'Z'; }

bool is_number(const std::string& text) { return io::number_in<std::size_t>(text).has_value(); }

/// The first that comes again, if one does.
std::optional<std::string> repeated(const std::vector<std::string>& names) {
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) != name) return *name;
  return std::nullopt;
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
  const std::string place =
      fmt::format("{}: {}", table.where(row), table.columns.empty() ? "choices" : table.columns[column]);
  Choices choices;
  if (std::ranges::count(row.nested, column) == 0) {
    if (cell.empty()) return choices;
    if (std::ranges::count(row.lists, column) == 0) return {.texts = {cell}};
    for (const std::string_view choice : io::split(cell, kChoiceSeparator)) choices.texts.emplace_back(choice);
    return choices;
  }
  const io::Json json = io::parse_json(cell, {table.where(row), Failure::input});
  if (json.is_array()) {
    if (!std::ranges::all_of(json, [](const io::Json& text) { return text.is_string(); }))
      fail(Failure::input, "{}: expected a list of texts, or {{\"text\": [], \"label\": []}}, got {}", place,
           io::shown(cell));
    return {.texts = json.get<std::vector<std::string>>()};
  }
  io::JsonReader reader(json, {place, Failure::input});
  choices.texts = texts_of(reader, "text");
  if (reader.find("label")) choices.names = texts_of(reader, "label");
  if (!choices.names.empty() && choices.names.size() != choices.texts.size())
    reader.refuse("label", fmt::format("one for each of {} texts", choices.texts.size()), reader.find("label"));
  if (repeated(choices.names)) reader.refuse("label", "a different one for each text", reader.find("label"));
  return choices;
}

std::vector<std::string> choice_names(const Task& task, const Table& table, const Layout& layout, const Row& row) {
  if (!task.labels.empty()) return task.labels;
  if (layout.choices.size() == 1) {
    const std::size_t count = choices_of_cell(table, row, static_cast<std::size_t>(layout.choices[0])).texts.size();
    if (count < 2)
      fail(Failure::input, "{}: --choice-columns: expected a list of at least two texts, got {}", table.where(row),
           count);
    return numbers_as_names(count);
  }
  if (table.columns.empty()) return numbers_as_names(layout.choices.size());
  std::vector<std::string> names;
  for (const int column : layout.choices) names.push_back(table.columns[static_cast<std::size_t>(column)]);
  if (const auto name = repeated(names))
    fail(Failure::input, "{}:1: --choice-columns: expected columns with different names, got {} twice", table.file,
         io::shown(*name));
  return names;
}

std::optional<std::size_t> chosen(const std::string& label, std::span<const std::string> names) {
  const auto named = static_cast<std::size_t>(std::ranges::find(names, label) - names.begin());
  if (named < names.size()) return named;
  // Names that are numbers or letters themselves count in their own way, maybe from 1.
  std::size_t number = names.size();
  if (is_letter(label) && std::ranges::none_of(names, is_letter)) number = static_cast<std::size_t>(label[0] - 'A');
  if (is_number(label) && std::ranges::none_of(names, is_number)) number = *io::number_in<std::size_t>(label);
  return number < names.size() ? std::optional(number) : std::nullopt;
}

}  // namespace bertrand::tasks
