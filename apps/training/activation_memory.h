// How much memory the forward and backward pass of a BERT takes, worked out from what each op keeps for backward.
#pragma once
#include "bert/model/config.h"

namespace bertrand::training {

/// A micro-batch, as far as memory is concerned.
struct BatchExtent {
  Dim tokens = 0, sequences = 0;
  Dim head_rows = 0;   ///< rows that the head runs on: masked tokens; 0 for heads on the pooled row
  Dim head_width = 0;  ///< columns of its logits: the vocabulary
};

/// Bytes of tensors alive at the peak of the pass, besides parameters and their gradients.
std::size_t activation_bytes(const bert::Config& config, const BatchExtent& batch, DType precision);

}  // namespace bertrand::training
