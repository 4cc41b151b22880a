// Which tokens are masked, and what stands there instead.
#include "bert/data/pretraining_text_masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bertrand::data {

namespace {

/// Positions that are hidden together: single tokens, or the pieces of a word. [CLS] and [SEP] are never hidden.
std::vector<std::vector<std::int32_t>> candidates(const PretrainingExample& example, const MaskingOptions& options,
                                                  const MaskingVocabulary& vocabulary) {
  std::vector<std::vector<std::int32_t>> groups;
  for (std::size_t i = 0; i < example.token_ids.size(); ++i) {
    const std::int32_t id = example.token_ids[i];
    if (id == vocabulary.cls || id == vocabulary.sep) continue;
    const bool joins =
        options.whole_words && !groups.empty() && vocabulary.continues_word[static_cast<std::size_t>(id)];
    if (!joins) groups.emplace_back();
    groups.back().push_back(static_cast<std::int32_t>(i));
  }
  return groups;
}

std::int32_t replacement(std::int32_t original, const MaskingVocabulary& vocabulary, Random& random) {
  if (random.uniform() < 0.8) return vocabulary.mask;
  if (random.uniform() < 0.5) return original;
  return static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(vocabulary.size)));
}

}  // namespace

std::int64_t prediction_count(std::int64_t tokens, const MaskingOptions& options) {
  // nearbyint rounds halves to even, as Python's round.
  const auto wanted = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(tokens) * options.probability));
  return std::min(options.max_predictions, std::max<std::int64_t>(1, wanted));
}

std::string doubt_about_predictions(std::int64_t tokens, const MaskingOptions& options) {
  const auto wanted = std::llround(options.probability * static_cast<double>(tokens));
  if (wanted <= options.max_predictions) return "";
  return fmt::format(
      "--max-predictions-per-seq: {} of an example of {} tokens, of which --masked-lm-prob {} would take {}",
      options.max_predictions, tokens, options.probability, wanted);
}

void mask_tokens(PretrainingExample& example, const MaskingOptions& options, const MaskingVocabulary& vocabulary,
                 Random& random) {
  const auto limit =
      static_cast<std::size_t>(prediction_count(static_cast<std::int64_t>(example.token_ids.size()), options));
  auto groups = candidates(example, options, vocabulary);
  random.shuffle(groups);

  std::vector<std::int32_t>& chosen = example.masked_positions;
  for (const auto& group : groups)
    if (chosen.size() + group.size() <= limit) chosen.insert(chosen.end(), group.begin(), group.end());
  std::sort(chosen.begin(), chosen.end());

  for (const std::int32_t position : chosen) {
    std::int32_t& id = example.token_ids[static_cast<std::size_t>(position)];
    example.masked_ids.push_back(id);
    id = replacement(id, vocabulary, random);
  }
}

}  // namespace bertrand::data
