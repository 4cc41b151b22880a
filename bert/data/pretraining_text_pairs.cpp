// Which segments of a corpus make a pair.
#include "bert/data/pretraining_text_pairs.h"

#include "io/error.h"
#include "tensor/random.h"

namespace bertrand::data {

namespace {

std::int64_t below(std::int64_t bound, Random& random) { return random.below(static_cast<std::uint32_t>(bound)); }

std::int64_t tokens(const Sentences& sentences, std::size_t first, std::size_t last) {
  return static_cast<std::int64_t>(sentences[last] - sentences[first]);
}

/// The end of the run of sentences from `first` on that has `target` tokens, or ends with the document.
std::size_t end_of_run(const Sentences& sentences, std::size_t first, std::int64_t target) {
  std::size_t last = first + 1;
  while (last < sentences.count() && tokens(sentences, first, last) < target) ++last;
  return last;
}

}  // namespace

DocumentPairs::DocumentPairs(const CorpusView& corpus, std::uint64_t document, const PairOptions& options,
                             std::uint64_t key)
    : corpus_(corpus), document_(document), options_(options), key_(key), sentences_(corpus.sentences(document)) {}

/// Gives each cut to `take`, until that returns false. What is drawn here does not depend on other documents, so that
/// pairs can be counted without looking at any.
template <class Take>
void DocumentPairs::walk(Take take) const {
  Random random(key_);
  const std::int64_t longest = options_.max_seq_length - 3;
  std::int64_t target = longest;
  if (random.uniform() < options_.short_seq_prob) target = 2 + below(longest - 1, random);
  std::size_t first = 0;
  while (first < sentences_.count()) {
    const std::size_t last = end_of_run(sentences_, first, target), count = last - first;
    const std::size_t middle =
        count >= 2 ? first + 1 + static_cast<std::size_t>(below(static_cast<std::int64_t>(count) - 1, random)) : last;
    const bool random_next = count == 1 || random.uniform() < 0.5;
    if (!take(Cut{first, middle, last, random_next, target})) return;
    first = random_next ? middle : last;  // sentences that a random B displaced are used by the next pair
  }
}

SegmentPair DocumentPairs::pair_of(const Cut& cut) const {
  SegmentPair pair{.a_begin = sentences_[cut.first],
                   .a_count = static_cast<std::uint32_t>(tokens(sentences_, cut.first, cut.middle)),
                   .random_next = cut.random_next};
  if (!cut.random_next) {
    pair.b_begin = sentences_[cut.middle];
    pair.b_count = static_cast<std::uint32_t>(tokens(sentences_, cut.middle, cut.last));
    return pair;
  }
  // Sentences of another document, from a random one on, until there are as many tokens as A leaves room for.
  Random random(mix(key_, cut.first + 1));
  auto other = static_cast<std::uint64_t>(below(static_cast<std::int64_t>(corpus_.documents()) - 1, random));
  if (other >= document_) ++other;
  const Sentences there = corpus_.sentences(other);
  const auto first = static_cast<std::size_t>(below(static_cast<std::int64_t>(there.count()), random));
  const std::size_t last = end_of_run(there, first, cut.target - pair.a_count);
  pair.b_begin = there[first];
  pair.b_count = static_cast<std::uint32_t>(tokens(there, first, last));
  return pair;
}

std::uint64_t DocumentPairs::count() const {
  std::uint64_t count = 0;
  walk([&](const Cut&) {
    ++count;
    return true;
  });
  return count;
}

SegmentPair DocumentPairs::pair(std::uint64_t number) const {
  SegmentPair found;
  std::uint64_t passed = 0;
  walk([&](const Cut& cut) {
    if (passed++ < number) return true;
    found = pair_of(cut);
    return false;
  });
  check(passed == number + 1, "corpus: document {} has no pair {}", document_, number);
  return found;
}

std::vector<SegmentPair> DocumentPairs::all() const {
  std::vector<SegmentPair> pairs;
  walk([&](const Cut& cut) {
    pairs.push_back(pair_of(cut));
    return true;
  });
  return pairs;
}

}  // namespace bertrand::data
