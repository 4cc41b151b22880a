// Which segments of a corpus make a pair.
#include "bert/data/pretraining_text_pairs.h"

#include "tensor/random.h"

namespace bertrand::data {

namespace {

/// A run of whole sentences, as tokens.
struct Run {
  std::uint64_t begin = 0;
  std::uint32_t count = 0;
};

class PairDrawer {
 public:
  PairDrawer(const Documents& documents, std::size_t document, const PairOptions& options, std::uint64_t key)
      : documents_(documents), document_(document), options_(options), random_(key) {}

  std::vector<SegmentPair> draw() {
    const std::int64_t longest = options_.max_seq_length - 3;
    std::int64_t target = longest;
    if (random_.uniform() < options_.short_seq_prob) target = 2 + below(longest - 1);

    std::uint64_t first = documents_.documents[document_];
    const std::uint64_t end = documents_.documents[document_ + 1];
    std::vector<SegmentPair> pairs;
    while (first < end) {
      std::uint64_t last = first + 1;
      while (last < end && tokens(first, last) < target) ++last;
      first = cut(first, last, target, pairs);
    }
    return pairs;
  }

 private:
  std::int64_t below(std::int64_t bound) { return random_.below(static_cast<std::uint32_t>(bound)); }
  std::int64_t tokens(std::uint64_t first, std::uint64_t last) const {
    return static_cast<std::int64_t>(documents_.sentences[last] - documents_.sentences[first]);
  }
  Run run(std::uint64_t first, std::uint64_t last) const {
    return {documents_.sentences[first], static_cast<std::uint32_t>(tokens(first, last))};
  }

  /// Makes one pair of sentences [first, last); returns the first sentence that it did not use.
  std::uint64_t cut(std::uint64_t first, std::uint64_t last, std::int64_t target, std::vector<SegmentPair>& pairs) {
    const auto sentences = static_cast<std::int64_t>(last - first);
    const std::uint64_t middle = sentences >= 2 ? first + 1 + static_cast<std::uint64_t>(below(sentences - 1)) : last;
    const bool random_next = sentences == 1 || random_.uniform() < 0.5;
    const Run a = run(first, middle);
    const Run b = random_next ? elsewhere(target - a.count) : run(middle, last);
    pairs.push_back({a.begin, b.begin, a.count, b.count, random_next});
    return random_next ? middle : last;  // sentences that a random B displaced are used by the next pair
  }

  /// Sentences of another document, from a random one on, until there are `target` tokens.
  Run elsewhere(std::int64_t target) {
    auto other = static_cast<std::size_t>(below(static_cast<std::int64_t>(documents_.count()) - 1));
    if (other >= document_) ++other;
    const std::uint64_t begin = documents_.documents[other], end = documents_.documents[other + 1];
    const std::uint64_t first = begin + static_cast<std::uint64_t>(below(static_cast<std::int64_t>(end - begin)));
    std::uint64_t last = first + 1;
    while (last < end && tokens(first, last) < target) ++last;
    return run(first, last);
  }

  const Documents& documents_;
  const std::size_t document_;
  const PairOptions& options_;
  Random random_;
};

}  // namespace

std::vector<SegmentPair> draw_pairs(const Documents& documents, std::size_t document, const PairOptions& options,
                                    std::uint64_t key) {
  return PairDrawer(documents, document, options, key).draw();
}

}  // namespace bertrand::data
