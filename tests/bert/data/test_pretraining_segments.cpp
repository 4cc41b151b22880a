// Examples of text where no next sentences are learnt: each is sentences of one document.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "bert/data/corpus_writer.h"
#include "bert/data/mapped_corpus.h"
#include "bert/data/pretraining_text.h"
#include "bert/data/pretraining_text_corpus.h"
#include "support/program.h"

using namespace bertrand;
using namespace bertrand::data;

namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kFirstWord = 5;

text::Vocabulary vocabulary_of(std::int32_t words) {
  std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (std::int32_t i = 0; i < words; ++i) lines += "w" + std::to_string(i) + "\n";
  return text::Vocabulary::parse(lines, "vocab.txt");
}

/// Examples of documents with sentences of the given lengths, of which every token is another word: the first is id 5.
PretrainingText text_of(const std::vector<std::vector<std::uint64_t>>& lengths, const PairOptions& pairs,
                        int threads = 1) {
  Documents documents;
  for (const auto& document : lengths) {
    for (const std::uint64_t length : document) documents.sentences.push_back(documents.sentences.back() + length);
    documents.documents.push_back(documents.sentences.size() - 1);
  }
  Ids words(documents.sentences.back());
  std::iota(words.begin(), words.end(), kFirstWord);
  const text::Vocabulary vocabulary = vocabulary_of(static_cast<std::int32_t>(words.size()));
  CompactIds ids(static_cast<std::size_t>(vocabulary.size()));
  ids.append(words);
  return {std::make_shared<HeldCorpus>(Corpus{.ids = ids, .documents = documents}, vocabulary.size()), vocabulary,
          PretrainingTextOptions{.pairs = pairs, .seed = 3, .threads = threads}};
}

/// The words between [CLS] and [SEP], of which none is masked any more.
Ids words_of(PretrainingExample example) {
  for (std::size_t m = 0; m < example.masked_positions.size(); ++m)
    example.token_ids[static_cast<std::size_t>(example.masked_positions[m])] = example.masked_ids[m];
  REQUIRE(example.token_ids.size() >= 3);
  CHECK(example.token_ids.front() == 2);
  CHECK(example.token_ids.back() == 3);
  return {example.token_ids.begin() + 1, example.token_ids.end() - 1};
}

/// How many words each example of an epoch has.
std::vector<std::size_t> sizes_of(PretrainingText text) {
  std::vector<std::size_t> sizes;
  for (std::int64_t i = 0; i < text.examples(0); ++i) sizes.push_back(words_of(text.example(0, i)).size());
  return sizes;
}

bool equal(const PretrainingExample& a, const PretrainingExample& b) {
  return a.token_ids == b.token_ids && a.token_types == b.token_types && a.masked_positions == b.masked_positions &&
         a.masked_ids == b.masked_ids && a.next_sentence_label == b.next_sentence_label;
}

}  // namespace

TEST_CASE("an example without a next sentence is one segment, and an epoch has every sentence once and whole") {
  const std::vector<std::vector<std::uint64_t>> lengths = {{7, 3, 12, 5, 9, 4, 30, 2}, {4, 4, 4}, {11}, {1}};
  std::vector<std::int32_t> begins = {kFirstWord}, of_documents = {kFirstWord};
  for (const auto& document : lengths) {
    for (const std::uint64_t length : document) begins.push_back(begins.back() + static_cast<std::int32_t>(length));
    of_documents.push_back(begins.back());
  }
  PretrainingText text = text_of(lengths, {.max_seq_length = 32, .short_seq_prob = 0.5, .next_sentence = false});
  CHECK(text.longest() == 32);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    std::int32_t next = kFirstWord;
    for (std::int64_t i = 0; i < text.examples(epoch); ++i) {
      const PretrainingExample example = text.example(epoch, i);
      CHECK(std::ssize(example.token_ids) == text.tokens(epoch, i));
      CHECK(text.tokens(epoch, i) <= 32);
      CHECK(std::ssize(example.masked_ids) == text.masked(epoch, i));
      CHECK(example.token_types == std::vector<std::int32_t>(example.token_ids.size(), 0));
      CHECK(example.next_sentence_label == 0);
      const Ids words = words_of(example);
      for (const std::int32_t word : words) CHECK(word == next++);
      CHECK(std::ranges::count(begins, next) == 1);  // where a sentence ends
      const auto document = std::ranges::upper_bound(of_documents, words.front());
      CHECK(words.back() < *document);
    }
    CHECK(next == begins.back());
  }
}

TEST_CASE(
    "an example without a next sentence has as many sentences as fit, or fewer in a document that was drawn short") {
  const std::vector<std::vector<std::uint64_t>> lengths = {{10, 10, 10, 10, 5}, {20, 11}, {30}};
  CHECK(sizes_of(text_of(lengths, {.max_seq_length = 32, .short_seq_prob = 0, .next_sentence = false})) ==
        std::vector<std::size_t>{30, 15, 20, 11, 30});
  PretrainingText text =
      text_of({std::vector<std::uint64_t>(40, 1)}, {.max_seq_length = 8, .short_seq_prob = 1, .next_sentence = false});
  std::vector<std::size_t> sizes;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) sizes.push_back(words_of(text.example(epoch, 0)).size());
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  CHECK(sizes == std::vector<std::size_t>{2, 3, 4, 5, 6});
}

TEST_CASE("a sentence that is longer than an example goes on in the next one, before the sentences that follow it") {
  const std::vector<std::vector<std::uint64_t>> lengths = {{70, 5, 30}, {31}, {60}};
  for (const double short_seq_prob : {0.0, 1.0}) {
    CAPTURE(short_seq_prob);
    PretrainingText text =
        text_of(lengths, {.max_seq_length = 32, .short_seq_prob = short_seq_prob, .next_sentence = false});
    std::int32_t next = kFirstWord;
    for (std::int64_t i = 0; i < text.examples(0); ++i)
      for (const std::int32_t word : words_of(text.example(0, i))) CHECK(word == next++);
    CHECK(next == kFirstWord + 70 + 5 + 30 + 31 + 60);
  }
  CHECK(sizes_of(text_of(lengths, {.max_seq_length = 32, .short_seq_prob = 0, .next_sentence = false})) ==
        std::vector<std::size_t>{30, 30, 15, 30, 30, 1, 30, 30});
}

TEST_CASE(
    "examples without a next sentence are the same in any order and on any threads, also of very long sentences") {
  const std::vector<std::vector<std::uint64_t>> lengths = {{5, 40'000, 3}, std::vector<std::uint64_t>(3000, 7), {9}};
  const PairOptions pairs{.max_seq_length = 16, .next_sentence = false};
  PretrainingText forward = text_of(lengths, pairs), backward = text_of(lengths, pairs, 3);
  const std::int64_t count = forward.examples(1);
  REQUIRE(backward.examples(1) == count);
  REQUIRE(count > 4000);
  std::vector<PretrainingExample> examples;
  for (std::int64_t i = 0; i < count; ++i) examples.push_back(forward.example(1, i));
  for (std::int64_t i = count - 1; i >= 0; i -= 37)
    CHECK(equal(backward.example(1, i), examples[static_cast<std::size_t>(i)]));
  const std::size_t before = text_of(lengths, pairs).bytes();
  CHECK(forward.bytes() - before >= 6 * 40);  // a mark for each thousand sentences, or examples of one sentence
  CHECK(forward.bytes() - before <= 100 * 40);
}

TEST_CASE("a corpus gives the examples of its text without next sentences, too, and one document is enough") {
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) words += std::string(1, c) + "\n##" + c + "\n";
  const text::Tokenizer tokenizer(text::Vocabulary::parse(words, "vocab.txt"));
  const support::TemporaryDirectory directory;
  const auto compare = [&](const std::string& name, const std::string& lines, std::size_t documents) {
    CAPTURE(name);
    support::write_text(directory / (name + ".txt"), lines);
    const std::vector<std::filesystem::path> files = {directory / (name + ".txt")};
    write_corpus({.inputs = files, .output = directory / name, .shards = 3}, tokenizer);
    const auto held = std::make_shared<HeldCorpus>(read_corpus(files, tokenizer, {.least_documents = 1}),
                                                   tokenizer.vocabulary().size());
    const auto mapped = std::make_shared<MappedCorpus>(std::vector{directory / name}, tokenizer,
                                                       CorpusCheck{.extent = InputCheck::none});
    CHECK(held->documents() == documents);
    const PretrainingTextOptions options{.pairs = {.max_seq_length = 12, .next_sentence = false}, .seed = 3};
    PretrainingText a(held, tokenizer.vocabulary(), options), b(mapped, tokenizer.vocabulary(), options);
    REQUIRE(a.examples(0) > 1);
    REQUIRE(a.examples(0) == b.examples(0));
    for (std::int64_t i = 0; i < a.examples(0); ++i) CHECK(equal(a.example(0, i), b.example(0, i)));
  };
  std::string many;
  for (int d = 0; d < 40; ++d) {
    for (int s = 0; s <= d % 3; ++s)
      many += std::string(static_cast<std::size_t>(1 + d * 7 % 20), static_cast<char>('a' + s)) + " " +
              static_cast<char>('a' + d % 26) + "\n";
    many += "\n";
  }
  compare("many", many, 40);
  compare("one", "a b c d e f g\nh i j k l m n o p q r s t u v w x y z\n", 1);
}
