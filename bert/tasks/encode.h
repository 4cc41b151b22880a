// One example as the encoder's input: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bert/tasks/dataset.h"
#include "bert/tasks/spilled_rows.h"
#include "bert/text/sequence.h"
#include "bert/text/tokenizer.h"

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

/// The examples of a dataset, one after the other in one row of tokens.
struct EncodedDataset {
  std::vector<std::int32_t> token_ids;
  std::vector<std::int64_t> offsets = {0};  ///< [examples + 1]: example i owns tokens offsets[i] .. offsets[i + 1]
  std::vector<std::int32_t> first_lengths;  ///< [examples]: how many of its tokens have type 0
  std::int64_t cut = 0;                     ///< examples that were longer than allowed
  std::shared_ptr<const SpilledRows> spilled =
      {};  ///< if it is there, the examples are in it, and the vectors are empty

  std::int64_t size() const { return std::ssize(spilled ? spilled->first_lengths() : std::span(first_lengths)); }
  /// The number of the first token of example i, or of all tokens if i is size().
  std::int64_t begin(std::int64_t i) const {
    return (spilled ? spilled->offsets() : std::span(offsets))[static_cast<std::size_t>(i)];
  }
  std::int64_t tokens(std::int64_t i) const { return begin(i + 1) - begin(i); }
  std::span<const std::int32_t> ids(std::int64_t i) const {
    return (spilled ? spilled->token_ids() : std::span(token_ids))
        .subspan(static_cast<std::size_t>(begin(i)), static_cast<std::size_t>(tokens(i)));
  }
  std::int32_t first_length(std::int64_t i) const {
    return (spilled ? spilled->first_lengths() : std::span(first_lengths))[static_cast<std::size_t>(i)];
  }
  std::size_t bytes() const;  ///< in memory
  /// Gives back the memory of examples that were looked at, where they can be looked at again.
  void let_go() const {
    if (spilled) spilled->let_go();
  }
};

/// Tokenises and cuts every example. A text that is not blank and yet has no token makes its row a bad one: Throws
/// Failure::input with file and line, unless such rows are kept apart.
EncodedDataset encode_dataset(Dataset& dataset, const text::Tokenizer& tokenizer, int max_length,
                              OnBadRow on_bad = OnBadRow::fail);

}  // namespace bertrand::tasks
