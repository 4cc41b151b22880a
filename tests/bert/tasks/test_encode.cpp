#include <doctest/doctest.h>

#include "bert/tasks/encode.h"
#include "io/error.h"
#include "support/program.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Ids = std::vector<std::int32_t>;
constexpr SpecialTokens kSpecial{.cls = 101, .sep = 102};

}  // namespace

TEST_CASE("a single text keeps its first pieces") {
  const text::Sequence encoded = encode_pieces({1, 2, 3, 4}, std::nullopt, kSpecial, 5);
  CHECK(encoded.token_ids == Ids{101, 1, 2, 3, 102});
  CHECK(encoded.token_types == Ids{0, 0, 0, 0, 0});
}

TEST_CASE("a pair loses from the end of the longer text, from the second when both are equal") {
  const text::Sequence even = encode_pieces({1, 2, 3, 4}, Ids{5, 6}, kSpecial, 8);
  CHECK(even.token_ids == Ids{101, 1, 2, 3, 102, 5, 6, 102});
  CHECK(even.token_types == Ids{0, 0, 0, 0, 0, 1, 1, 1});
  CHECK(encode_pieces({1, 2, 3}, Ids{5, 6, 7}, kSpecial, 8).token_ids == Ids{101, 1, 2, 3, 102, 5, 6, 102});
  CHECK(encode_pieces({1}, Ids{5, 6, 7, 8}, kSpecial, 6).token_ids == Ids{101, 1, 102, 5, 6, 102});
}

TEST_CASE("what fits is left as it is") {
  CHECK(encode_pieces({1, 2}, std::nullopt, kSpecial, 6).token_ids == Ids{101, 1, 2, 102});
  CHECK(encode_pieces({1, 2}, Ids{3}, kSpecial, 6).token_ids == Ids{101, 1, 2, 102, 3, 102});
}

TEST_CASE("a length without room for the texts is refused") {
  CHECK(encode_pieces({1, 4}, Ids{2, 5}, kSpecial, 5).token_ids == Ids{101, 1, 102, 2, 102});
  CHECK(encode_pieces({1, 4}, std::nullopt, kSpecial, 3).token_ids == Ids{101, 1, 102});
  CHECK_THROWS_WITH_AS(encode_pieces({1}, Ids{2}, kSpecial, 4),
                       "--max-seq-length: expected at least 5 for pairs, got 4", Error);
  CHECK_THROWS_AS(encode_pieces({1}, std::nullopt, kSpecial, 2), Error);
}

namespace {

text::Tokenizer small_tokenizer() {
  return text::Tokenizer(
      text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\nfish\n##es\nblue\n", "vocab"));
}

EncodedDataset encode(const std::vector<Example>& examples, int max_length) {
  const text::Tokenizer tokenizer = small_tokenizer();
  ExampleEncoder encoder(tokenizer, max_length);
  EncodedDataset encoded;
  const Dataset dataset{.file = "d.tsv"};
  for (const Example& example : examples) encoder.append(dataset, example, encoded);
  return encoded;
}

}  // namespace

TEST_CASE("examples are tokenised into one row of tokens, and what was cut is counted") {
  const EncodedDataset encoded = encode({{.text_a = "Red fishes", .text_b = "blue", .line = 2},
                                         {.text_a = "red red red red red", .text_b = "fish", .line = 3}},
                                        7);
  REQUIRE(encoded.size() == 2);
  const auto ids = [&](std::int64_t i) { return Ids(encoded.ids(i).begin(), encoded.ids(i).end()); };
  CHECK(ids(0) == Ids{2, 5, 6, 7, 3, 8, 3});
  CHECK(ids(1) == Ids{2, 5, 5, 5, 3, 6, 3});
  CHECK(encoded.first_length(0) == 5);
  CHECK(encoded.first_length(1) == 5);
  CHECK(encoded.tokens(1) == 7);
  CHECK(encoded.cut == 1);
}

TEST_CASE("an empty text that a task lets pass has no tokens") {
  const EncodedDataset encoded = encode({{.text_a = "red", .text_b = "", .line = 5}}, 8);
  CHECK(Ids(encoded.ids(0).begin(), encoded.ids(0).end()) == Ids{2, 5, 3, 3});
}

TEST_CASE("a text without a single token names its line") {
  CHECK_THROWS_WITH_AS(encode({{.text_a = "\xE2\x80\x8B", .line = 5}}, 8),
                       "d.tsv:5: text: expected at least one token, got none", Error);
}

TEST_CASE("examples go to the disk as they come, with all that belongs to them") {
  const support::TemporaryDirectory directory;
  EncodedDataset encoded({.directory = std::filesystem::path(directory / "."), .held_bytes = 100});
  for (int i = 0; i < 1000; ++i) {
    encoded.token_ids.append(Ids{2, i, 3});
    encoded.targets.append(Ids(static_cast<std::size_t>(i % 20), i));
    encoded.end_example(i);
    CHECK(encoded.bytes() < 1000);
  }
  encoded.finish();
  REQUIRE(encoded.size() == 1000);
  CHECK(encoded.begin(1000) == 3000);
  CHECK(encoded.targets_at(9499, 1)[0] == 999);
  CHECK(encoded.first_length(999) == 999);
  CHECK(encoded.ids(999)[1] == 999);
}

TEST_CASE("the memory of examples is that of their tokens, their targets and where they lie") {
  EncodedDataset encoded;
  encoded.token_ids.append(Ids{2, 5, 3});
  encoded.targets.append(Ids(100, 1));
  encoded.end_example(3);
  CHECK(encoded.bytes() >= 103 * sizeof(std::int32_t) + 2 * sizeof(std::int64_t) + sizeof(std::int32_t));
  CHECK(encoded.bytes() < 1000);
}
