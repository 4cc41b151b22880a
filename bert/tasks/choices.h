// Multiple choice: the classes of a row are texts of its own, one of which is right (SWAG, Zellers et al. 2018).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/table.h"
#include "bert/tasks/task.h"

namespace bertrand::tasks {

/// Between the items of a list that a cell has become: ASCII's unit separator, which texts do not have.
inline constexpr char kChoiceSeparator = '\x1f';

/// What the choices of a table are called: as the task has it, else as their columns, else by their numbers from 0.
/// Throws Failure::input naming the file if a list of its first row has fewer than two.
std::vector<std::string> choice_names(const Task& task, const Table& table, const Layout& layout);

/// The items of a list.
std::vector<std::string> split_choices(std::string_view cell);

/// The name of the choice that a label means: its name, its number from 0, or its letter, A for the first; none if it
/// means none of them.
std::optional<std::string> chosen(const std::string& label, std::span<const std::string> names);

}  // namespace bertrand::tasks
