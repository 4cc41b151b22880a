// Text to words: Google's BasicTokenizer (google-research/bert, tokenization.py).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bert/text/utf8.h"

namespace bertrand::text {

/// A list of words in one growing buffer, so that filling it again costs no allocation. After the last byte of every
/// word at least 16 more may be read.
class Words {
 public:
  struct Word {
    std::size_t begin;       ///< offset in the buffer
    std::size_t size;        ///< bytes
    std::size_t characters;  ///< code points
  };

  const std::vector<Word>& list() const { return list_; }
  std::string_view bytes(const Word& word) const { return {buffer_.data() + word.begin, word.size}; }

  void clear() { list_.clear(), end_ = 0; }

  /// Room for `bytes` more bytes; the end of what is written so far. Write there, then say with add() what it was.
  char* reserve(std::size_t bytes) {
    if (buffer_.size() < end_ + bytes + 16) buffer_.resize(2 * (end_ + bytes + 16));
    return buffer_.data() + end_;
  }
  /// The next `size` bytes, written already, are a word of so many code points.
  void add(std::size_t size, std::size_t characters) {
    list_.push_back({end_, size, characters});
    end_ += size;
  }

 private:
  std::vector<char> buffer_;
  std::vector<Word> list_;
  std::size_t end_ = 0;
};

/// Cuts text into words and punctuation; with lower_case also lower-cases and strips accents. Holds buffers: one for
/// each thread.
class WordSplitter {
 public:
  explicit WordSplitter(bool lower_case) : lower_case_(lower_case) {}

  /// Appends the words of `text`, which is any bytes, to `words`. Returns what was no UTF-8.
  DroppedBytes split(std::string_view text, Words& words);

 private:
  void split_ascii_chunk(const char* begin, const char* end, Words& words);
  void split_chunk(const char* begin, const char* end, Words& words);
  void normalise(Words& words);
  void split_on_punctuation(const std::u32string& text, Words& words);

  bool lower_case_;
  std::string valid_;          // the text without what is no UTF-8
  std::u32string token_;       // what stands between white space
  std::u32string normalised_;  // token_ in lower case without accents
};

/// Where the characters of the words that WordSplitter makes of `text` come from, one after the other: the code point,
/// with the accents behind it that were stripped. `text` is valid UTF-8.
std::vector<std::string_view> character_places(std::string_view text, bool lower_case);

}  // namespace bertrand::text
