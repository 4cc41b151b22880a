// Multiple choice: the classes of a row are texts of its own, one of which is right (SWAG, Zellers et al. 2018).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bert/tasks/table.h"
#include "bert/tasks/task.h"

namespace bertrand::tasks {

/// Between the items of a list that a cell has become: ASCII's unit separator. A list with it in a text stays JSON.
inline constexpr char kChoiceSeparator = '\x1f';

/// What the choices of a table are called whose first row is this: as the task has it, else as their columns, else by
/// their numbers from 0. Throws Failure::input with file and line if a list has fewer than two, or two columns one
/// name.
std::vector<std::string> choice_names(const Task& task, const Table& table, const Layout& layout, const Row& row);

/// What a row has to choose from.
struct Choices {
  std::vector<std::string> texts;
  std::vector<std::string> names = {};  ///< that the row's own label has for them; empty: those of choice_names()
};
/// In one cell: a list, or {"text": […], "label": […]}, as the hub has CommonsenseQA and ARC. Throws Failure::input
/// with file and line for another object.
Choices choices_of_cell(const Table& table, const Row& row, std::size_t column);

/// The number of the choice that a label means by its name; or by this number, or its letter, A for the first, unless
/// numbers, or letters, are names; none if it means none of them.
std::optional<std::size_t> chosen(const std::string& label, std::span<const std::string> names);

}  // namespace bertrand::tasks
