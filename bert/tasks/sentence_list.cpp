// A word is a row, with its label if it has one; a row without cells ends a sentence.
#include "bert/tasks/sentence_list.h"

#include <fmt/format.h>

namespace bertrand::tasks {

void SentenceList::append(const TokenFile& file) {
  file_ = file.file;
  for (std::size_t s = 0; s < file.sentences(); ++s) {
    for (std::size_t w = file.offsets[s]; w < file.offsets[s + 1]; ++w) {
      Row row{.cells = {file.words[w]}, .line = file.lines[w]};
      if (!file.labels.empty()) row.cells.push_back(file.labels[w]);
      rows_.add(row);
    }
    rows_.add({});
    ++sentences_;
  }
}

std::string SentenceList::where() const { return fmt::format("{}:{}", file_, rows_.front().line); }

void SentenceList::for_each(const std::function<void(std::size_t number, const TokenFile& sentence)>& use) const {
  TokenFile sentence{.file = file_, .words = {}};
  std::size_t number = 0;
  rows_.for_each([&](const Row& row) {
    if (!row.cells.empty()) {
      sentence.words.push_back(row.cells[0]);
      if (row.cells.size() > 1) sentence.labels.push_back(row.cells[1]);
      sentence.lines.push_back(row.line);
      return;
    }
    sentence.offsets = {0, sentence.words.size()};
    use(number++, sentence);
    sentence.words.clear();
    sentence.labels.clear();
    sentence.lines.clear();
  });
}

}  // namespace bertrand::tasks
