// Sentences of words, in memory or on the disk.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "bert/tasks/row_list.h"
#include "bert/tasks/token_file.h"

namespace bertrand::tasks {

/// Sentences are added, then walked through.
class SentenceList {
 public:
  SentenceList() : SentenceList(io::SpillPlace()) {}
  /// What is more than `place` says goes to the disk.
  explicit SentenceList(const io::SpillPlace& place) : rows_(place) {}

  /// Adds those of a file. All have labels, or none. Throws Failure::io if the disk is full.
  void append(const TokenFile& file);
  /// After the last sentence.
  void finish() { rows_.finish(); }

  std::size_t sentences() const { return sentences_; }
  std::size_t words() const { return rows_.size() - sentences_; }
  bool labelled() const { return !rows_.empty() && rows_.front().cells.size() > 1; }
  const std::string& file() const { return file_; }  ///< as the messages name it
  /// "file:line" of the first word, for messages.
  std::string where() const;
  std::size_t held_bytes() const { return rows_.held_bytes(); }  ///< in memory
  /// Calls `use` for each sentence, in order, with its number from 0; the sentence is valid until it returns.
  void for_each(const std::function<void(std::size_t number, const TokenFile& sentence)>& use) const;

 private:
  std::string file_;
  RowList rows_;
  std::size_t sentences_ = 0;
};

}  // namespace bertrand::tasks
