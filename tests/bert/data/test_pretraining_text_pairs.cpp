#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "bert/data/pretraining_text_corpus.h"
#include "bert/data/pretraining_text_masks.h"
#include "bert/data/pretraining_text_pairs.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::data;

namespace {

/// Documents with the given sentence lengths.
Documents documents_of(const std::vector<std::vector<std::uint64_t>>& lengths) {
  Documents documents{.sentences = {0}, .documents = {0}};
  for (const auto& document : lengths) {
    for (const std::uint64_t length : document) documents.sentences.push_back(documents.sentences.back() + length);
    documents.documents.push_back(documents.sentences.size() - 1);
  }
  return documents;
}

bool equal(const SegmentPair& a, const SegmentPair& b) {
  return a.a_begin == b.a_begin && a.b_begin == b.b_begin && a.a_count == b.a_count && a.b_count == b.b_count &&
         a.random_next == b.random_next;
}

std::vector<SegmentPair> draw_pairs(const Documents& documents, std::uint64_t document, const PairOptions& options,
                                    std::uint64_t key) {
  CompactIds ids(100);
  ids.append(std::vector<std::int32_t>(documents.sentences.back()));
  const HeldCorpus corpus({.ids = ids, .documents = documents}, 100);
  std::vector<SegmentPair> all;
  std::vector<PairPlace> places;
  for (DocumentPairs pairs(corpus, document, options, key); !pairs.at_end(); pairs.pass()) {
    all.push_back(pairs.pair());
    places.push_back(pairs.place());
  }
  for (std::size_t i = 0; i < all.size(); i += 1 + all.size() / 5) {  // a walk that goes on there has the same pairs
    DocumentPairs pairs(corpus, document, options, key, places[i]);
    for (std::size_t j = i; j < all.size(); ++j, pairs.pass()) CHECK(equal(pairs.pair(), all[j]));
    CHECK(pairs.at_end());
  }
  return all;
}

std::size_t document_of(const Documents& documents, std::uint64_t token) {
  for (std::size_t d = 0; d < documents.count(); ++d)
    if (token < documents.sentences[documents.documents[d + 1]]) return d;
  return documents.count();
}

PretrainingExample example_of(std::int32_t tokens) {
  PretrainingExample example;
  example.token_ids.push_back(1);
  for (std::int32_t i = 1; i < tokens - 1; ++i) example.token_ids.push_back(10 + i % 50);
  example.token_ids.push_back(2);
  return example;
}

MaskingVocabulary vocabulary_of(std::int32_t size) {
  MaskingVocabulary vocabulary{.cls = 1, .sep = 2, .mask = 3, .size = size, .continues_word = {}};
  for (std::int32_t id = 0; id < size; ++id) vocabulary.continues_word.push_back(id >= 10 && id % 3 == 0);
  return vocabulary;
}

}  // namespace

TEST_CASE("pairs use every sentence of a document as A or true B, in order and without overlap") {
  const Documents documents = documents_of({{7, 3, 12, 5, 9, 4, 30, 2}, {4, 4, 4}, {11}});
  for (std::uint64_t key = 0; key < 200; ++key) {
    std::uint64_t next = 0;  // first token of document 0 not used yet
    for (const SegmentPair& pair : draw_pairs(documents, 0, {.max_seq_length = 32}, key)) {
      CHECK(pair.a_begin == next);
      CHECK(pair.a_count > 0);
      CHECK(pair.b_count > 0);
      next = pair.a_begin + pair.a_count;
      if (!pair.random_next) {
        CHECK(pair.b_begin == next);
        next += pair.b_count;
      } else {
        CHECK(document_of(documents, pair.b_begin) != 0);
      }
    }
    CHECK(next == documents.sentences[documents.documents[1]]);
  }
}

TEST_CASE("about half of the pairs have a random second segment, and single sentences always do") {
  const Documents documents = documents_of({std::vector<std::uint64_t>(2000, 10), {4, 4, 4}, {11}});
  const auto pairs = draw_pairs(documents, 0, {.max_seq_length = 64, .short_seq_prob = 0}, 7);
  const auto random = std::count_if(pairs.begin(), pairs.end(), [](const SegmentPair& p) { return p.random_next; });
  CHECK(static_cast<double>(random) / static_cast<double>(pairs.size()) == doctest::Approx(0.5).scale(0).epsilon(0.15));
  for (std::uint64_t key = 0; key < 50; ++key) CHECK(draw_pairs(documents, 2, {}, key).at(0).random_next);
}

TEST_CASE("a random segment is as long as the room that A leaves, in whole sentences") {
  const Documents documents = documents_of({{5, 5}, std::vector<std::uint64_t>(100, 10)});
  for (std::uint64_t key = 0; key < 100; ++key)
    for (const SegmentPair& pair : draw_pairs(documents, 0, {.max_seq_length = 64, .short_seq_prob = 0}, key))
      if (pair.random_next) {
        const bool reaches_the_end = pair.b_begin + pair.b_count == documents.sentences.back();
        CHECK((reaches_the_end || pair.a_count + pair.b_count >= 61));
        CHECK(pair.a_count + pair.b_count < 71);
      }
}

TEST_CASE("the number of predictions is Google's: rounded half to even, at least one, at most the limit") {
  CHECK(prediction_count(10, {.probability = 0.15}) == 2);  // 1.5 → 2
  CHECK(prediction_count(30, {.probability = 0.15}) == 4);  // 4.5 → 4
  CHECK(prediction_count(5, {.probability = 0.01}) == 1);
  CHECK(prediction_count(512, {.probability = 0.15}) == 20);
}

TEST_CASE("masked positions are ascending, never [CLS] or [SEP], and keep what stood there") {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  for (std::uint64_t key = 0; key < 100; ++key) {
    PretrainingExample example = example_of(100);
    const std::vector<std::int32_t> before = example.token_ids;
    Random random(key);
    mask_tokens(example, {}, vocabulary, random);
    CHECK(example.masked_positions.size() == 15);
    CHECK(std::is_sorted(example.masked_positions.begin(), example.masked_positions.end()));
    std::vector<std::int32_t> restored = example.token_ids;
    for (std::size_t i = 0; i < example.masked_positions.size(); ++i) {
      CHECK(example.masked_positions[i] > 0);
      CHECK(example.masked_positions[i] < 99);
      restored[static_cast<std::size_t>(example.masked_positions[i])] = example.masked_ids[i];
    }
    CHECK(restored == before);
  }
}

TEST_CASE("of the masked tokens 80 % become [MASK], 10 % a random id and 10 % stay") {
  const MaskingVocabulary vocabulary = vocabulary_of(30000);
  int masks = 0, stay = 0, all = 0;
  for (std::uint64_t key = 0; key < 2000; ++key) {
    PretrainingExample example = example_of(100);
    Random random(key);
    mask_tokens(example, {}, vocabulary, random);
    for (std::size_t i = 0; i < example.masked_positions.size(); ++i, ++all) {
      const std::int32_t id = example.token_ids[static_cast<std::size_t>(example.masked_positions[i])];
      masks += id == 3;
      stay += id == example.masked_ids[i];
    }
  }
  CHECK(masks / static_cast<double>(all) == doctest::Approx(0.8).scale(0).epsilon(0.02));
  CHECK(stay / static_cast<double>(all) == doctest::Approx(0.1).scale(0).epsilon(0.1));
}

TEST_CASE("a random id in place of a masked token may be any of the vocabulary") {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  std::set<std::int32_t> drawn;
  for (std::uint64_t key = 0; key < 2000; ++key) {
    PretrainingExample example = example_of(100);
    Random random(key);
    mask_tokens(example, {}, vocabulary, random);
    for (std::size_t i = 0; i < example.masked_positions.size(); ++i)
      if (const std::int32_t id = example.token_ids[static_cast<std::size_t>(example.masked_positions[i])];
          id != 3 && id != example.masked_ids[i])
        drawn.insert(id);
  }
  CHECK(drawn.size() == 99);  // all but that of [MASK]
  CHECK(*drawn.begin() == 0);
  CHECK(*drawn.rbegin() == 99);
}

TEST_CASE("a word that has more pieces than may be masked is passed over, and shorter ones fill what is left") {
  MaskingVocabulary vocabulary = vocabulary_of(100);
  std::fill(vocabulary.continues_word.begin(), vocabulary.continues_word.end(), false);
  vocabulary.continues_word[12] = true;
  for (std::uint64_t key = 0; key < 100; ++key) {
    PretrainingExample example;
    example.token_ids = {1, 11};  // a word of ten pieces, then eight of one
    example.token_ids.insert(example.token_ids.end(), 9, 12);
    example.token_ids.insert(example.token_ids.end(), 8, 13);
    example.token_ids.push_back(2);
    Random random(key);
    mask_tokens(example, {.whole_words = true}, vocabulary, random);
    CHECK(example.masked_ids == std::vector<std::int32_t>(3, 13));
  }
}

TEST_CASE("whole-word masking hides all pieces of a word or none") {
  const MaskingVocabulary vocabulary = vocabulary_of(100);
  for (std::uint64_t key = 0; key < 200; ++key) {
    PretrainingExample example = example_of(100);
    const std::vector<std::int32_t> before = example.token_ids;
    Random random(key);
    mask_tokens(example, {.whole_words = true}, vocabulary, random);
    CHECK(example.masked_positions.size() <= 15);
    const std::set<std::int32_t> masked(example.masked_positions.begin(), example.masked_positions.end());
    for (std::int32_t i = 2; i < 99; ++i)
      if (vocabulary.continues_word[static_cast<std::size_t>(before[static_cast<std::size_t>(i)])])
        CHECK(masked.contains(i) == masked.contains(i - 1));
  }
}

TEST_CASE("short pairs have from two tokens to as many as fit") {
  const Documents documents = documents_of({std::vector<std::uint64_t>(40, 1), {4, 4}});
  std::set<std::uint32_t> sizes;
  for (std::uint64_t key = 0; key < 200; ++key)
    for (const SegmentPair& pair : draw_pairs(documents, 0, {.max_seq_length = 8, .short_seq_prob = 1}, key))
      if (!pair.random_next && pair.b_begin + pair.b_count < 40) sizes.insert(pair.a_count + pair.b_count);
  CHECK(sizes == std::set<std::uint32_t>{2, 3, 4, 5});
}

TEST_CASE("a random segment may begin with any sentence of any other document") {
  const Documents documents = documents_of({{3}, {4, 4}, {5, 5, 5}, {6}});
  std::set<std::uint64_t> first, last;
  for (std::uint64_t key = 0; key < 600; ++key) {
    first.insert(draw_pairs(documents, 0, {}, key).at(0).b_begin);
    last.insert(draw_pairs(documents, 3, {}, key).at(0).b_begin);
  }
  CHECK(first == std::set<std::uint64_t>{3, 7, 11, 16, 21, 26});
  CHECK(last == std::set<std::uint64_t>{0, 3, 7, 11, 16, 21});
}

TEST_CASE("each random segment of a document is drawn anew") {
  std::vector<std::vector<std::uint64_t>> lengths(30, {4, 4});
  lengths[0].assign(400, 10);
  const Documents documents = documents_of(lengths);
  std::size_t random = 0;
  std::set<std::uint64_t> begins;
  for (const SegmentPair& pair : draw_pairs(documents, 0, {.max_seq_length = 64}, 7))
    if (pair.random_next) ++random, begins.insert(pair.b_begin);
  CHECK(random > 20);
  CHECK(begins.size() > random / 2);
}

TEST_CASE("where a pair is cut does not depend on how long it was drawn to be") {
  const Documents documents = documents_of({std::vector<std::uint64_t>(40, 1), {4, 4}});
  std::set<std::uint32_t> first_segments;  // of pairs of four tokens, which are short ones: five would fit
  for (std::uint64_t key = 0; key < 600; ++key) {
    const SegmentPair pair = draw_pairs(documents, 0, {.max_seq_length = 8, .short_seq_prob = 0.5}, key).at(0);
    if (!pair.random_next && pair.a_count + pair.b_count == 4) first_segments.insert(pair.a_count);
  }
  CHECK(first_segments == std::set<std::uint32_t>{1, 2, 3});
}

TEST_CASE("ids of a vocabulary of at most 65536 tokens take two bytes each, and those of a larger one four") {
  const std::vector<std::int32_t> some = {0, 5, 65535};
  for (const std::size_t size : {65536, 65537}) {
    CAPTURE(size);
    CompactIds ids(size);
    ids.append(some);
    CHECK(ids[2] == 65535);
    CHECK(ids.size() == 3);
    CHECK(ids.bytes() >= (size == 65536 ? 6 : 12));
    CHECK(ids.bytes() <= 100);
  }
}

TEST_CASE("places that are not in a corpus are refused") {
  CompactIds ids(100);
  ids.append(std::vector<std::int32_t>{0, 8, 9});
  const HeldCorpus corpus({.ids = ids, .documents = documents_of({{1}, {2}})}, 100);
  std::vector<std::int32_t> read;
  corpus.append_ids(1, 2, read);
  CHECK(read == std::vector<std::int32_t>{8, 9});
  corpus.append_ids(0, 1, read);
  corpus.append_ids(3, 0, read);  // none at the end
  CHECK(read == std::vector<std::int32_t>{8, 9, 0});
  const auto refusal = [&](std::uint64_t begin, std::uint64_t count) {
    return support::refusal(Failure::input, [&] { corpus.append_ids(begin, count, read); });
  };
  CHECK(refusal(1, 3) == "text: tokens: expected places below 3, got 1 to 4; hint: make the corpus again");
  CHECK(refusal(4, 1) == "text: tokens: expected places below 3, got 4 to 5; hint: make the corpus again");
}
