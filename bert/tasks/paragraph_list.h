// Paragraphs with questions, in memory or on the disk.
#pragma once
#include <functional>

#include "bert/tasks/row_list.h"
#include "bert/tasks/squad_file.h"

namespace bertrand::tasks {

/// Paragraphs are added, then walked through.
class ParagraphList {
 public:
  /// What is more than `place` says goes to the disk.
  explicit ParagraphList(const io::SpillPlace& place) : rows_(place) {}

  /// Throws Failure::io if the disk is full.
  void add(const SquadParagraph& paragraph);
  /// After the last paragraph.
  void finish() { rows_.finish(); }

  std::size_t held_bytes() const { return rows_.held_bytes(); }  ///< in memory
  /// Calls `use` for each paragraph, in order.
  void for_each(const std::function<void(SquadParagraph&& paragraph)>& use) const;

 private:
  RowList rows_;
};

}  // namespace bertrand::tasks
