// Cuts documents into pairs of segments (A, B), half of them with a B from elsewhere, as google-research/bert
// create_pretraining_data.py does; drawn anew in every epoch. Or into A alone: sentences of one document one after the
// other (DOC-SENTENCES of Liu et al. 2019, "RoBERTa").
#pragma once
#include <cstdint>

#include "bert/data/corpus_view.h"
#include "tensor/random.h"

namespace bertrand::data {

/// Two runs of tokens, not yet cut to the length of an example. B is empty where A is alone.
struct SegmentPair {
  std::uint64_t a_begin = 0, b_begin = 0;
  std::uint32_t a_count = 0, b_count = 0;
  bool random_next = false;
};

struct PairOptions {
  std::int64_t max_seq_length = 128;  ///< at least 5: [CLS] a [SEP] b [SEP]
  double short_seq_prob = 0.1;        ///< of a document to be cut into shorter pairs
  bool next_sentence = true;          ///< false: A alone, [CLS] a [SEP]

  /// The tokens that both segments may have.
  std::int64_t room() const { return max_seq_length - (next_sentence ? 3 : 2); }
};

/// Where a walk through the pairs of a document goes on: the first sentence of the next pair, and how many random
/// numbers were drawn before it.
struct PairPlace {
  std::uint64_t sentence = 0, drawn = 0;
  std::int64_t token = 0;  ///< of the sentence: above 0 if A is alone and its beginning filled the one before
};

/// A walk through the pairs of one document; `key` names seed, epoch and document. None is kept, so a document takes no
/// memory.
///
/// With next sentences: whole sentences up to a target are one pair, cut between two of them at random. Half of the
/// pairs, and all of one sentence, have a B of another document instead, and the next pair begins with the sentences
/// that it displaced. There are at least two documents, and fewer than 2^32. Differs from Google's in one point: a
/// random B is never from the same document, however few there are.
///
/// Without: A has whole sentences up to the target. Only a sentence that is longer than an example is cut: it fills the
/// example, and the next one begins within it. There may be any number of documents.
class DocumentPairs {
 public:
  /// Begins at the first pair, or at a place of a walk with the same arguments. The corpus must outlive this. All throw
  /// Error(Failure::input) if what the corpus says of the sentences that they look at cannot be.
  DocumentPairs(const CorpusView& corpus, std::uint64_t document, const PairOptions& options, std::uint64_t key,
                const PairPlace& from = {});

  /// Whether every pair has been passed.
  bool at_end() const { return place_.sentence >= sentences_.count(); }
  const PairPlace& place() const { return place_; }
  /// The pair at this place.
  SegmentPair pair() const;
  /// Goes on to the next pair.
  void pass();

 private:
  void end_a_and_b();
  void end_a_alone();
  SegmentPair a_alone() const;
  SegmentPair a_and_b() const;

  const CorpusView& corpus_;
  const std::uint64_t document_, key_;
  const PairOptions options_;
  const Sentences sentences_;
  Random random_;        // of what does not depend on other documents, so that passing looks at none
  std::int64_t target_;  // tokens of a pair
  PairPlace place_;
  std::size_t last_ = 0;  // the sentence where the pair ends
  // With next sentences: [place_.sentence, middle_) are A. B is [middle_, last_), or from elsewhere.
  std::size_t middle_ = 0;
  bool random_next_ = false;
  // Without: A ends before this token of last_.
  std::int64_t token_ = 0;
};

}  // namespace bertrand::data
