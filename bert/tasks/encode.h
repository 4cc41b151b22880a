// One example as the encoder's input: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace bertrand::tasks {

struct Encoded {
  std::vector<std::int32_t> token_ids;
  std::vector<std::int32_t> token_types;  ///< 0 up to the first [SEP], 1 after it
};

struct SpecialTokens {
  std::int32_t cls = 0, sep = 0;
};

/// Joins the pieces of one or two texts, cut to `max_length` tokens in all by the rule of google-research/bert's
/// run_classifier.py: a single text keeps its first max_length - 2 pieces; of a pair the longer one loses its last
/// piece, the second one when both are equal, until max_length - 3 are left. Throws Failure::usage if max_length leaves
/// no room for a piece of each.
Encoded encode_pieces(std::vector<std::int32_t> a, std::optional<std::vector<std::int32_t>> b, SpecialTokens special,
                      int max_length);

}  // namespace bertrand::tasks
