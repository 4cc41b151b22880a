// Words counted in bounded memory.
#include "bert/text/word_counts.h"

#include <algorithm>
#include <tuple>

#include "bert/text/words.h"
#include "io/split.h"

namespace bertrand::text {

void WordCounts::add(std::string_view word, std::uint64_t count) {
  if (const auto known = counts_.find(word); known != counts_.end()) {
    known->second += count;
  } else {
    counts_.emplace(word, count);
  }
}

InvalidBytes WordCounts::add_lines(std::string_view lines, bool lower_case) {
  InvalidBytes invalid;
  WordSplitter splitter(lower_case);
  Words words;
  std::uint64_t number = 0;
  for (const std::string_view line : io::lines_of(lines)) {
    words.clear();
    invalid.add(splitter.split(line, words), ++number);
    for (const Words::Word& word : words.list()) add(words.bytes(word), 1);
    if (counts_.size() > most_words_) forget_rare();
  }
  return invalid;
}

void WordCounts::merge(const WordCounts& other) {
  for (const auto& [word, count] : other.counts_) add(word, count);
  forgotten_ += other.forgotten_;
  if (counts_.size() > most_words_) forget_rare();
}

// Forgets every word that is at most as frequent as the middle one, so that it is rarely called.
void WordCounts::forget_rare() {
  std::vector<std::uint64_t> counts;
  counts.reserve(counts_.size());
  for (const auto& entry : counts_) counts.push_back(entry.second);
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  const std::uint64_t threshold = *middle;
  std::erase_if(counts_, [&](const auto& entry) {
    if (entry.second > threshold) return false;
    forgotten_ += entry.second;
    return true;
  });
}

std::vector<std::pair<std::string, std::uint64_t>> WordCounts::sorted() const {
  std::vector<std::pair<std::string, std::uint64_t>> words(counts_.begin(), counts_.end());
  std::ranges::sort(
      words, [](const auto& a, const auto& b) { return std::tie(b.second, a.first) < std::tie(a.second, b.first); });
  return words;
}

}  // namespace bertrand::text
