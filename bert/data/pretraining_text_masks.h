// Chooses the tokens that a pre-training example hides, as google-research/bert create_pretraining_data.py does.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bert/data/pretraining_examples.h"
#include "tensor/random.h"

namespace bertrand::data {

struct MaskingOptions {
  double probability = 0.15;          ///< of a token to be predicted
  std::int64_t max_predictions = 20;  ///< per example
  bool whole_words = false;           ///< hide all pieces of a word or none
};

/// The ids that masking needs to know.
struct MaskingVocabulary {
  std::int32_t cls = 0, sep = 0, mask = 0;
  std::int32_t size = 0;
  std::vector<bool> continues_word;  ///< by id: whether the piece begins with ##; only read for whole words
};

/// How many tokens of an example of `tokens` (with [CLS] and [SEP]) are predicted at most: at least one.
std::int64_t prediction_count(std::int64_t tokens, const MaskingOptions& options);

/// What a person should be told if examples of `tokens` have fewer predicted tokens than their share; "" else.
std::string doubt_about_predictions(std::int64_t tokens, const MaskingOptions& options);

/// Masks `example.token_ids` in place and fills masked_positions and masked_ids, which are empty before. Of the chosen
/// tokens 80 % become [MASK], 10 % a random id, 10 % stay.
void mask_tokens(PretrainingExample& example, const MaskingOptions& options, const MaskingVocabulary& vocabulary,
                 Random& random);

}  // namespace bertrand::data
