// One example as the encoder's input: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bert/tasks/dataset.h"
#include "bert/text/sequence.h"
#include "bert/text/tokenizer.h"
#include "io/spillable.h"

namespace bertrand::tasks {

struct SpecialTokens {
  std::int32_t cls = 0, sep = 0;
};

/// Joins the pieces of one or two texts, cut to `max_length` tokens in all by the rule of google-research/bert's
/// run_classifier.py: a single text keeps its first max_length - 2 pieces; of a pair the longer one loses its last
/// piece, the second one when both are equal, until max_length - 3 are left. Throws Failure::usage if max_length leaves
/// no room for a piece of each.
text::Sequence encode_pieces(std::vector<std::int32_t> a, std::optional<std::vector<std::int32_t>> b,
                             SpecialTokens special, int max_length);

/// The examples of a file, one after the other in one row of tokens.
class EncodedDataset {
 public:
  EncodedDataset() : EncodedDataset(io::SpillPlace()) {}
  /// What is more than `place` says goes to the disk.
  explicit EncodedDataset(io::SpillPlace place) : place_(std::move(place)) { offsets_.push_back(0); }

  io::Spillable<std::int32_t> token_ids;
  io::Spillable<std::int32_t> targets;  ///< to learn: as many numbers for each example, or each token, as the task says
  std::int64_t cut = 0;                 ///< examples that were longer than allowed

  /// The tokens since the last example are one; the first `first_length` of them have type 0. Throws Failure::io if the
  /// disk is full.
  void end_example(std::int32_t first_length);
  /// After the last example. What follows may be called by threads together.
  void finish();

  std::int64_t size() const { return first_lengths_.size(); }
  /// The number of the first token of example i, or of all tokens if i is size().
  std::int64_t begin(std::int64_t i) const { return offsets_.all()[static_cast<std::size_t>(i)]; }
  std::int64_t tokens(std::int64_t i) const { return begin(i + 1) - begin(i); }
  std::span<const std::int32_t> ids(std::int64_t i) const { return part(token_ids, begin(i), tokens(i)); }
  std::int32_t first_length(std::int64_t i) const { return first_lengths_.all()[static_cast<std::size_t>(i)]; }
  /// The targets [begin, begin + count).
  std::span<const std::int32_t> targets_at(std::int64_t begin, std::int64_t count) const {
    return part(targets, begin, count);
  }
  std::size_t bytes() const;  ///< in memory
  /// Gives back the memory of examples that were looked at if they can be looked at again.
  void let_go() const;

 private:
  static std::span<const std::int32_t> part(const io::Spillable<std::int32_t>& of, std::int64_t begin,
                                            std::int64_t count) {
    return of.all().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
  }

  io::SpillPlace place_;
  io::Spillable<std::int64_t> offsets_;        // [examples + 1]: example i owns tokens offsets[i] .. offsets[i + 1]
  io::Spillable<std::int32_t> first_lengths_;  // [examples]: how many of its tokens have type 0
};

/// Tokenises and cuts examples. Has buffers: one for each thread. The tokenizer must outlive it.
class ExampleEncoder {
 public:
  ExampleEncoder(const text::Tokenizer& tokenizer, int max_length);
  /// Of choices each becomes an example of `to`, with text_a and what comes before it. `dataset` is for messages.
  /// Throws Failure::input with file and line for a text that is not blank and yet has no token.
  void append(const Dataset& dataset, const Example& example, EncodedDataset& to);

 private:
  /// `what` the text is, for messages.
  std::vector<std::int32_t> pieces_of(const std::string& text, const char* what, const Dataset& dataset,
                                      const Example& example);

  SpecialTokens special_;
  int max_length_;
  text::CachingTokenizer caching_;
};

}  // namespace bertrand::tasks
