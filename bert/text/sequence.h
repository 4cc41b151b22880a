// An encoded text: what a model reads of one or two texts.
#pragma once
#include <cstdint>
#include <vector>

namespace bertrand::text {

/// [CLS] a [SEP], or [CLS] a [SEP] b [SEP]; not padded.
struct Sequence {
  std::vector<std::int32_t> token_ids;
  std::vector<std::int32_t> token_types;  ///< as many: 0 up to the first [SEP], 1 after it
};

}  // namespace bertrand::text
