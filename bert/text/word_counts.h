// How often each word occurs in a text: what a vocabulary is learnt from.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bert/text/utf8.h"
#include "io/seeded_hash.h"

namespace bertrand::text {

/// Counts of words. Bounded: if there are more than `most_words` different ones, the rarest are forgotten. A million
/// take some 100 MB, and 48.6 MB of Wikipedia have 200,000; what is forgotten is too rare to become a piece.
class WordCounts {
 public:
  explicit WordCounts(std::size_t most_words = std::size_t{1} << 20) : most_words_(most_words) {}

  /// Counts the words of some lines of text, as the tokenizer cuts them. Returns what was no UTF-8.
  InvalidBytes add_lines(std::string_view lines, bool lower_case);
  /// Adds other counts. What is kept depends on the order of the calls, so threads should hand in fixed parts in order.
  void merge(const WordCounts& other);

  /// All words, the most frequent first, then by their bytes.
  std::vector<std::pair<std::string, std::uint64_t>> sorted() const;

  std::size_t size() const { return counts_.size(); }
  /// How many occurrences of words were forgotten to keep the memory bounded.
  std::uint64_t forgotten() const { return forgotten_; }

 private:
  void add(std::string_view word, std::uint64_t count);
  void forget_rare();

  std::size_t most_words_;
  std::unordered_map<std::string, std::uint64_t, io::SeededHash, std::equal_to<>> counts_;
  std::uint64_t forgotten_ = 0;
};

}  // namespace bertrand::text
