// What pre-training reads, wherever it comes from: two segments with some tokens masked, and whether the second follows
// the first (Devlin et al. 2018, "BERT"); or one segment.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bert/text/sequence.h"

namespace bertrand::data {

/// [CLS] A [SEP] B [SEP], or [CLS] A [SEP], with some tokens masked.
struct PretrainingExample : text::Sequence {
  std::vector<std::int32_t> masked_positions;  ///< ascending
  std::vector<std::int32_t> masked_ids;        ///< what stood there
  std::int32_t next_sentence_label = 0;        ///< 0: B follows A; 1: B is from somewhere else
};

/// The counts that the memory of an example follows from.
struct ExampleSize {
  std::int64_t tokens = 0, masked = 0;
};

/// A set of examples. Which examples an epoch has is a function of its number alone. Threads may call it together.
class PretrainingExamples {
 public:
  virtual ~PretrainingExamples() = default;

  /// How many examples epoch `epoch` (from 0) has.
  virtual std::int64_t examples(std::int64_t epoch) = 0;
  /// Example `number` of that epoch, numbered from 0 in the order of the input. May read it from a file: throws Error.
  virtual PretrainingExample example(std::int64_t epoch, std::int64_t number) = 0;
  /// Its number of tokens, without making it.
  virtual std::int64_t tokens(std::int64_t epoch, std::int64_t number) = 0;
  /// How many of them are masked, at most.
  virtual std::int64_t masked(std::int64_t epoch, std::int64_t number) = 0;
  /// The most tokens any example can have.
  virtual std::int64_t longest() const = 0;
  /// The sizes of `count` made-up examples, or fewer if no epoch has so many: any `count` examples of any epoch have at
  /// most their tokens in all, their masked tokens in all and their longest.
  virtual std::vector<ExampleSize> largest(std::int64_t count) const = 0;
  /// The memory this takes.
  virtual std::size_t bytes() const = 0;
};

}  // namespace bertrand::data
