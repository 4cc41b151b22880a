// The figures of words with true and predicted labels, as a file names them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bert/tasks/entity_scores.h"
#include "bert/tasks/score_files.h"
#include "bert/tasks/token_scores.h"

namespace bertrand::tasks {

class WordScores {
 public:
  explicit WordScores(TokenTask task) : task_(task) {}

  /// The labels of a sentence.
  void add(const std::vector<std::string>& truth, const std::vector<std::string>& predicted);
  /// As score_tokens_file() has them. There was at least one word.
  FileScores scores() const;

 private:
  FileScores of_entities() const;
  FileScores of_labels() const;
  std::int32_t number_of(const std::string& label);

  const TokenTask task_;
  EntityCounter entities_;                       // of ner
  std::string other_;                            // of ner: the first true label that is no tag of an entity
  std::map<std::string, std::int32_t> numbers_;  // of the other tasks: labels by which comes first
  std::vector<std::int32_t> truth_, predicted_;
};

}  // namespace bertrand::tasks
