#include "bert/tasks/token_windows.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "io/error.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Ids = std::vector<std::int32_t>;

// [CLS] is 2, [SEP] is 3; a = 4, … e = 8, ##s = 9.
const text::Tokenizer& tokenizer() {
  static const text::Tokenizer one(
      text::Vocabulary::parse("[UNK]\n[MASK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\n##s\n", "vocab.txt"));
  return one;
}

EncodedSentences encoded(const std::vector<std::string>& words, const WindowOptions& options) {
  EncodedSentences result;
  SentenceEncoder(tokenizer(), options).append(words, result);
  return result;
}

Ids window(const EncodedSentences& sentences, std::int64_t number) {
  const auto ids = sentences.windows.ids(number);
  return {ids.begin(), ids.end()};
}

}  // namespace

TEST_CASE("the pieces of words follow each other and a word may have none") {
  const EncodedSentences sentence = encoded({"a", "bss", "\xE2\x80\x8B", "Cs-d"}, {.max_length = 16});
  CHECK(window(sentence, 0) == Ids{2, 4, 5, 9, 9, 6, 9, 0, 7, 3});
  CHECK(sentence.words() == 4);
  CHECK(sentence.token(0) == 1);
  CHECK(sentence.token(1) == 2);
  CHECK(sentence.tokens(1).size() == 3);
  CHECK_FALSE(sentence.token(2).has_value());
  CHECK(sentence.token(3) == 5);
  CHECK(sentence.windows.first_length(0) == 10);
  CHECK(sentence.cut == 0);
}

TEST_CASE("the tokens of a sentence come behind those of the sentences before it") {
  EncodedSentences sentences;
  SentenceEncoder encoder(tokenizer(), {.max_length = 8});
  encoder.append(std::vector<std::string>{"a", "bs"}, sentences);
  encoder.append(std::vector<std::string>{"\xE2\x80\x8B"}, sentences);
  encoder.append(std::vector<std::string>{"c"}, sentences);
  CHECK(sentences.windows.size() == 2);
  CHECK(sentences.words() == 4);
  CHECK(sentences.token(1) == 2);
  CHECK_FALSE(sentences.token(2).has_value());
  CHECK(sentences.token(3) == 6);
  CHECK(sentences.windows.token_ids.all()[6] == 6);
}

TEST_CASE("a long sentence has windows that overlap and each piece counts where it has most context") {
  // Windows of four pieces that share two: abcd, cdea, ea b.
  const EncodedSentences sentence = encoded({"a", "b", "c", "d", "e", "a", "b"}, {.max_length = 6, .overlap = 2});
  REQUIRE(sentence.windows.size() == 3);
  CHECK(window(sentence, 0) == Ids{2, 4, 5, 6, 7, 3});
  CHECK(window(sentence, 1) == Ids{2, 6, 7, 8, 4, 3});
  CHECK(window(sentence, 2) == Ids{2, 8, 4, 5, 3});
  // c has a neighbour on its right in the first window, d on its left in the second one.
  CHECK(sentence.piece_tokens == std::vector<std::int64_t>{1, 2, 3, 8, 9, 14, 15});
  CHECK(sentence.cut == 1);
  // Windows that share one piece, which has a neighbour on one side only: the first one counts.
  CHECK(encoded({"a", "b", "c", "d", "e", "a", "b"}, {.max_length = 6, .overlap = 1}).piece_tokens ==
        std::vector<std::int64_t>{1, 2, 3, 4, 8, 9, 10});
}

TEST_CASE("a window that is a hundred pieces longer outweighs a little more context") {
  // The second window has 11 pieces and shares 10 with the first one, which has 126. Google's score of a window is the
  // context + 0.01 of the length.
  const EncodedSentences sentence = encoded(std::vector<std::string>(127, "a"), {.max_length = 128, .overlap = 10});
  REQUIRE(sentence.windows.size() == 2);
  for (std::int64_t i = 0; i < 126; ++i) CHECK(sentence.piece_tokens[static_cast<std::size_t>(i)] == i + 1);
  CHECK(sentence.piece_tokens[126] == 128 + 11);
}

TEST_CASE("windows overlap by a quarter unless another number is given") {
  const std::vector<std::string> words(20, "a");
  CHECK(encoded(words, {.max_length = 10}).piece_tokens ==
        encoded(words, {.max_length = 10, .overlap = 2}).piece_tokens);
}

TEST_CASE("a sentence that just fits is one window") {
  CHECK(encoded({"a", "b", "c", "d"}, {.max_length = 6, .overlap = 3}).windows.size() == 1);
  CHECK(encoded({"a", "b", "c", "d"}, {.max_length = 6, .overlap = 3}).cut == 0);
  CHECK(encoded({"a", "b", "c", "d", "e"}, {.max_length = 6, .overlap = 3}).windows.size() == 2);
}

TEST_CASE("no word of a sentence of 10000 words is lost whatever the window and the overlap") {
  const std::vector<std::string> letters = {"a", "bs", "css", "d", "e"};
  std::vector<std::string> words;
  for (std::size_t i = 0; i < 10000; ++i) words.push_back(letters[i * i % 5]);
  for (const auto& [length, overlap] : std::vector<std::pair<int, int>>{{3, 0}, {16, 0}, {16, 13}, {128, 31}}) {
    CAPTURE(length);
    const EncodedSentences sentence = encoded(words, {.max_length = length, .overlap = overlap});
    const auto ids = sentence.windows.token_ids.all();
    for (std::size_t w = 0; w < words.size(); ++w) {
      REQUIRE(sentence.token(w).has_value());
      REQUIRE(ids[*sentence.token(w)] == words[w][0] - 'a' + 4);
    }
    std::vector<std::int64_t> all = sentence.piece_tokens;
    std::ranges::sort(all);
    CHECK(std::ranges::adjacent_find(all) == all.end());
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < sentence.windows.size(); ++i) longest = std::max(longest, sentence.windows.tokens(i));
    CHECK(longest == length);
  }
}

TEST_CASE("a window without room for a piece and an overlap without a step are refused") {
  const auto refusal = [](const WindowOptions& options) {
    return support::refusal(Failure::usage, [&] { encoded({"a"}, options); });
  };
  CHECK(refusal({.max_length = 2}) == "--max-seq-length: expected at least 3 for [CLS], a piece and [SEP], got 2");
  CHECK(refusal({.max_length = 6, .overlap = 4}) ==
        "--doc-stride: expected 0 … 3, less than the pieces of a window, got 4");
}
