// Pre-training examples from plain text, drawn anew in every epoch: which sentences make a pair, whether the second is
// a random one, and what is masked are functions of (seed, epoch, document or example) alone.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "bert/data/pretraining_examples.h"
#include "bert/data/pretraining_text_corpus.h"
#include "bert/data/pretraining_text_masks.h"
#include "bert/data/pretraining_text_pairs.h"

namespace bertrand::data {

struct PretrainingTextOptions {
  PairOptions pairs;
  MaskingOptions masking;
  std::uint64_t seed = 42;
  int threads = 1;                                            ///< for tokenising; the result does not depend on it
  std::function<void(std::size_t bytes)> progress = nullptr;  ///< called with the bytes read since the last call
};

class PretrainingText : public PretrainingExamples {
 public:
  /// Tokenises the files. Throws as read_corpus does.
  PretrainingText(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                  const PretrainingTextOptions& options);

  std::int64_t examples(std::int64_t epoch) override;
  PretrainingExample example(std::int64_t epoch, std::int64_t number) override;
  std::int64_t tokens(std::int64_t epoch, std::int64_t number) override;
  std::int64_t masked(std::int64_t epoch, std::int64_t number) override {
    return predictions(tokens(epoch, number), options_.masking);
  }
  std::int64_t longest() const override { return options_.pairs.max_seq_length; }
  std::vector<ExampleSize> largest(std::int64_t count) const override;
  std::size_t bytes() const override;

  const Corpus& corpus() const { return corpus_; }

 private:
  using Pairs = std::vector<SegmentPair>;
  struct Epoch {
    std::int64_t number = -1;
    std::shared_ptr<const Pairs> pairs;
  };
  std::shared_ptr<const Pairs> pairs(std::int64_t epoch);

  PretrainingTextOptions options_;
  MaskingVocabulary vocabulary_;
  Corpus corpus_;
  mutable std::mutex mutex_;    // of what follows
  std::array<Epoch, 2> drawn_;  // one epoch may be read ahead while the one before it is trained on
};

}  // namespace bertrand::data
