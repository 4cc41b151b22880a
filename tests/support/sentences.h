// Sentences of words for tests, and the arrays that belong to them.
#pragma once
#include <string>
#include <vector>

#include "bert/tasks/sentence_list.h"

namespace support {

/// All sentences of a file together, as walk_sentences gives them one by one.
inline bertrand::tasks::TokenFile read_token_file(const std::string& path, const bertrand::tasks::TokenColumns& columns,
                                                  bool needs_label, std::vector<std::string>* bad = nullptr) {
  bertrand::tasks::TokenFile all{.file = path, .words = {}};
  const auto add = [&](const bertrand::tasks::TokenFile& sentence) {
    all.words.insert(all.words.end(), sentence.words.begin(), sentence.words.end());
    all.labels.insert(all.labels.end(), sentence.labels.begin(), sentence.labels.end());
    all.lines.insert(all.lines.end(), sentence.lines.begin(), sentence.lines.end());
    all.offsets.push_back(all.words.size());
  };
  all.invalid = bertrand::tasks::walk_sentences(path, columns, needs_label, bad, add).invalid;
  return all;
}

/// Sentences of these words in the file "f", a word a line. `labels` are those of all words.
inline bertrand::tasks::SentenceList sentence_list(const std::vector<std::vector<std::string>>& sentences,
                                                   const std::vector<std::string>& labels = {},
                                                   const bertrand::io::SpillPlace& place = {}) {
  bertrand::tasks::TokenFile file{.file = "f", .words = {}, .labels = labels};
  for (const std::vector<std::string>& words : sentences) {
    file.words.insert(file.words.end(), words.begin(), words.end());
    file.offsets.push_back(file.words.size());
  }
  for (std::size_t w = 0; w < file.words.size(); ++w) file.lines.push_back(static_cast<std::int64_t>(w) + 1);
  bertrand::tasks::SentenceList list(place);
  list.append(file);
  list.finish();
  return list;
}

template <class T>
bertrand::io::Spillable<T> spillable(const std::vector<T>& values) {
  bertrand::io::Spillable<T> array;
  array.append(values);
  return array;
}

}  // namespace support
