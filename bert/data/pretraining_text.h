// Pre-training examples from plain text, drawn anew in every epoch: which sentences make a pair, whether the second is
// a random one, and what is masked are functions of (seed, epoch, document or example) alone.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "bert/data/corpus_view.h"
#include "bert/data/pretraining_examples.h"
#include "bert/data/pretraining_text_masks.h"
#include "bert/data/pretraining_text_pairs.h"
#include "bert/text/vocabulary.h"

namespace bertrand::data {

struct PretrainingTextOptions {
  PairOptions pairs;
  MaskingOptions masking;
  std::uint64_t seed = 42;
  int threads = 1;  ///< for counting; the result does not depend on it
};

/// An epoch's pairs are not kept: they are drawn when they are asked for. Memory: 40 bytes for each thousand sentences,
/// and what the corpus takes.
class PretrainingText : public PretrainingExamples {
 public:
  /// Throws Error(Failure::input) for fewer than two documents, or 2^32, unless A is alone. Later all throw as
  /// CorpusView does.
  PretrainingText(std::shared_ptr<const CorpusView> corpus, const text::Vocabulary& vocabulary,
                  const PretrainingTextOptions& options);

  /// Walks through the corpus when an epoch is asked for first.
  std::int64_t examples(std::int64_t epoch) override;
  PretrainingExample example(std::int64_t epoch, std::int64_t number) override;
  std::int64_t tokens(std::int64_t epoch, std::int64_t number) override;
  std::int64_t masked(std::int64_t epoch, std::int64_t number) override {
    return prediction_count(tokens(epoch, number), options_.masking);
  }
  std::int64_t longest() const override { return options_.pairs.max_seq_length; }
  std::vector<ExampleSize> largest(std::int64_t count) const override;
  std::size_t bytes() const override;

 private:
  /// Where example `example` is: a document, and a place in it, so that no example is far from a mark, however long
  /// the document.
  struct Mark {
    std::uint64_t example, document;
    PairPlace place;
  };
  /// Some documents of an epoch: their marks, with examples numbered from 0, and how many there are.
  struct Counted {
    std::vector<Mark> marks;
    std::uint64_t examples = 0;
  };
  struct Epoch {
    std::int64_t number = -1;
    std::shared_ptr<const Counted> counted;
  };
  /// What was asked for lately: a step asks for the tokens of each example, and then for the example.
  struct Drawn {
    std::int64_t epoch = -1, number = 0;
    SegmentPair pair;
  };

  DocumentPairs pairs(std::int64_t epoch, std::uint64_t document, const PairPlace& from = {}) const;
  Counted count(std::int64_t epoch, std::uint64_t first, std::uint64_t last) const;
  std::shared_ptr<const Counted> counted(std::int64_t epoch);
  SegmentPair pair(std::int64_t epoch, std::int64_t number);

  PretrainingTextOptions options_;
  MaskingVocabulary vocabulary_;
  std::shared_ptr<const CorpusView> corpus_;
  mutable std::mutex mutex_;      // of what follows
  std::array<Epoch, 2> counted_;  // one epoch may be read ahead while the one before it is trained on
  std::vector<Drawn> drawn_;
};

}  // namespace bertrand::data
