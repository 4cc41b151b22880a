// Cuts documents into pairs of segments (A, B), half of them with a B from elsewhere, as google-research/bert
// create_pretraining_data.py does; drawn anew in every epoch.
#pragma once
#include <cstdint>
#include <vector>

#include "bert/data/corpus_view.h"

namespace bertrand::data {

/// Two runs of tokens, not yet cut to the length of an example.
struct SegmentPair {
  std::uint64_t a_begin = 0, b_begin = 0;
  std::uint32_t a_count = 0, b_count = 0;
  bool random_next = false;
};

struct PairOptions {
  std::int64_t max_seq_length = 128;  ///< at least 5: [CLS] a [SEP] b [SEP]
  double short_seq_prob = 0.1;        ///< of a document to be cut into shorter pairs
};

/// The pairs of one document; `key` names seed, epoch and document. There are at least two documents, and fewer than
/// 2^32. They are walked through in order and none is kept, so a document takes no memory.
/// Differs from Google's in one point: a random B is never from the same document, however few there are.
class DocumentPairs {
 public:
  /// All must outlive this. Throws Error(Failure::input) if what the corpus says of the document cannot be.
  DocumentPairs(const CorpusView& corpus, std::uint64_t document, const PairOptions& options, std::uint64_t key);

  std::uint64_t count() const;
  /// Pair `number`, below count().
  SegmentPair pair(std::uint64_t number) const;
  std::vector<SegmentPair> all() const;
  /// The sentences of the document.
  std::uint64_t sentences() const { return sentences_.count(); }

 private:
  /// Sentences [first, middle) are A. B is [middle, last), or from elsewhere.
  struct Cut {
    std::size_t first, middle, last;
    bool random_next;
    std::int64_t target;
  };
  template <class Take>
  void walk(Take take) const;
  SegmentPair pair_of(const Cut& cut) const;

  const CorpusView& corpus_;
  std::uint64_t document_;
  PairOptions options_;
  std::uint64_t key_;
  Sentences sentences_;
};

}  // namespace bertrand::data
