// A task's examples, in memory or on the disk.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "bert/tasks/row_list.h"

namespace bertrand::tasks {

struct Example {
  std::string id;  ///< of the file's id column, else the row's number from 0
  std::string text_a;
  std::optional<std::string> text_b;
  std::vector<std::string> choices = {};  ///< of multiple choice; each is read behind text_b, if there is one
  std::optional<std::string> label;       ///< as the file spells it, of a choice its name; absent if it has none
  std::int64_t line = 0;

  /// What the model reads beside text_a, for people: of choices all, between " | ".
  std::optional<std::string> second_text() const;
};

/// Examples are added, then walked through.
class ExampleList {
 public:
  ExampleList() : ExampleList(io::SpillPlace()) {}
  /// What is more than `place` says goes to the disk.
  explicit ExampleList(const io::SpillPlace& place) : rows_(place) {}
  ExampleList(std::initializer_list<Example> examples);

  /// Throws Failure::io if the disk is full.
  void push_back(const Example& example);
  /// After the last example.
  void finish() { rows_.finish(); }

  std::size_t size() const { return rows_.size(); }
  std::size_t held_bytes() const { return rows_.held_bytes(); }  ///< in memory
  /// Calls `use` for each example, in order, with its number from 0; the example is valid until it returns.
  void for_each(const std::function<void(std::size_t number, const Example&)>& use) const;

 private:
  RowList rows_;
};

}  // namespace bertrand::tasks
