// Masked examples with what a model takes the masked tokens for.
#pragma once
#include <span>
#include <string_view>

#include "bert/data/pretraining_examples.h"
#include "tensor/tensor.h"
#include "training/step/objective.h"

namespace bertrand::objectives {

/// `logits` are [masked tokens of all examples, vocabulary]; `vocabulary` is vocab.txt. Of each example "tokens", as
/// the model reads them, and "masked": a list of "position", "truth", its "probability", and "guesses", the likeliest
/// tokens as [token, probability].
training::Samples samples_of(std::span<const data::PretrainingExample> examples, const Tensor& logits,
                             std::string_view vocabulary);

}  // namespace bertrand::objectives
