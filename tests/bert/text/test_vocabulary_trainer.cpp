#include "bert/text/vocabulary_trainer.h"

#include <doctest/doctest.h>

#include "io/error.h"

using namespace bertrand::text;
using Strings = std::vector<std::string>;

namespace {

WordCounts counts_of(const std::string& text) {
  WordCounts counts;
  counts.add_lines(text, true);
  return counts;
}

}  // namespace

TEST_CASE("the most frequent pair becomes a piece first, and equally frequent ones in the order of their numbers") {
  const Strings tokens = train_vocabulary(counts_of("ab ab ab abc abc bc bc\n"), {.size = 12});
  // a+##b 5 times; then ab+##c and b+##c twice each, of which b has the smaller number.
  CHECK(tokens == Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##b", "##c", "ab", "bc"});
}

TEST_CASE("pairs that are too rare are left, and so are words with rare characters") {
  const Strings tokens =
      train_vocabulary(counts_of("aa aa xy"), {.size = 100, .min_frequency = 2, .limit_alphabet = 1});
  CHECK(tokens == Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "aa"});
}

TEST_CASE("a pair that other merges made less frequent is merged in its new turn") {
  const Strings tokens = train_vocabulary(counts_of("ab ab ab ab abc abc abc ybc zbc"), {.size = 100});
  // a+##b 7 times, which takes three of the five ##b+##c; then ab+##c three times and ##b+##c twice.
  CHECK(Strings(tokens.begin() + 5, tokens.end()) ==
        Strings{"a", "b", "c", "y", "z", "##b", "##c", "ab", "abc", "##bc"});
}

TEST_CASE("min_frequency may be 1, and the size may be that of the alphabet") {
  CHECK(train_vocabulary(counts_of("ab"), {.size = 100, .min_frequency = 1}).back() == "ab");
  CHECK(train_vocabulary(counts_of("ab"), {.size = 100, .min_frequency = 2}).back() == "##b");
  CHECK(train_vocabulary(counts_of("abc abc"), {.size = 10}).size() == 10);
}

TEST_CASE("a run of the same letter is merged from the left") {
  const Strings tokens = train_vocabulary(counts_of("aaaaa aaaaa"), {.size = 100});
  // a a a a a: ##a+##a is found three times a word, then what is left of the word goes on.
  CHECK(Strings(tokens.begin() + 5, tokens.end()) == Strings{"a", "##a", "##aa", "aaa", "aaaaa"});
}

TEST_CASE("a size below the alphabet, and a text without words, are refused") {
  CHECK_THROWS_AS(train_vocabulary(counts_of("abc"), {.size = 6}), bertrand::Error);
  CHECK_THROWS_AS(train_vocabulary(counts_of(" \n"), {.size = 100}), bertrand::Error);
}

TEST_CASE("where there are too many different words, the rarest are forgotten") {
  WordCounts counts(4);
  counts.add_lines("a a a b b\nc d\ne\n", true);
  CHECK(counts.sorted() == std::vector<std::pair<std::string, std::uint64_t>>{{"a", 3}, {"b", 2}});
  CHECK(counts.forgotten() == 3);  // c, d and e, once there are five words
}

TEST_CASE("counts of several texts add up, and no more words are kept than may be") {
  const auto counted = [](const std::string& text, std::size_t most) {
    WordCounts counts(most);
    counts.add_lines(text, true);
    return counts;
  };
  using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
  WordCounts all = counted("a a b\n", 3);
  all.merge(counted("b b c\n", 3));
  CHECK(all.sorted() == Counts{{"b", 3}, {"a", 2}, {"c", 1}});
  CHECK(all.forgotten() == 0);
  const WordCounts none = counted("d e f g\n", 3);  // four words of which none is more frequent than another
  CHECK(none.size() == 0);
  all.merge(none);
  CHECK(all.forgotten() == 4);
  all.merge(counted("d\n", 3));  // a fourth one: the half that is rarer goes
  CHECK(all.sorted() == Counts{{"b", 3}});
  CHECK(all.forgotten() == 4 + 2 + 1 + 1);
}

TEST_CASE("words are counted without what is no UTF-8, which is told with its line") {
  WordCounts counts;
  const InvalidBytes invalid = counts.add_lines("a\nb\xFF\n", true);
  CHECK(counts.sorted() == std::vector<std::pair<std::string, std::uint64_t>>{{"a", 1}, {"b", 1}});
  CHECK(invalid.count == 1);
  CHECK(invalid.first_line == 2);
  CHECK(invalid.first_column == 2);
}

TEST_CASE("what the limit of the alphabet leaves out is counted") {
  LeftOutCharacters left_out;
  train_vocabulary(counts_of("aa aa aba xy"), {.size = 100, .limit_alphabet = 1}, &left_out);
  CHECK(left_out.count == 3);
  CHECK(left_out.share == doctest::Approx(3.0 / 9));
  train_vocabulary(counts_of("aa aa aba xy"), {.size = 100}, &left_out);
  CHECK(left_out.count == 0);
  CHECK(left_out.share == 0);
}

TEST_CASE("of characters that are as frequent the first are taken, and each merge tells how many tokens there are") {
  CHECK(train_vocabulary(counts_of("ab ab"), {.size = 100, .limit_alphabet = 1}) ==
        Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"});
  std::vector<std::size_t> told;
  const auto progress = [&](std::size_t tokens) { told.push_back(tokens); };
  CHECK(train_vocabulary(counts_of("abc abc"), {.size = 100, .progress = progress}).size() == 12);
  CHECK(told == std::vector<std::size_t>{11, 12});
}
