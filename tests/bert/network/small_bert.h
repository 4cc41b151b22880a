// A BERT small enough to be differentiated by moving its weights one at a time, and a batch for it.
#pragma once
#include <memory>
#include <vector>

#include "bert/network/config.h"
#include "bert/network/packed_batch.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"
#include "tensor/random.h"

namespace bertrand::small {

/// One CPU backend for all tests of this program: models end before it.
inline Backend& cpu() {
  static const std::unique_ptr<Backend> backend = open_cpu({.threads = 2});
  return *backend;
}

inline bert::Config config(Activation activation) {
  return {.vocab_size = 23,
          .hidden_size = 12,
          .num_hidden_layers = 2,
          .num_attention_heads = 3,
          .intermediate_size = 20,
          .hidden_act = activation,
          .max_position_embeddings = 11,
          .initializer_range = 0.4,
          .layer_norm_eps = 1e-3};
}

/// Sequences of 9, 1, 4 and 6 tokens, of both types.
inline std::vector<bert::Sequence> sequences() {
  Random random(4);
  std::vector<bert::Sequence> all;
  for (const std::size_t length : {9, 1, 4, 6}) {
    bert::Sequence s{.key = 40 + length};
    for (std::size_t i = 0; i < length; ++i) {
      s.token_ids.push_back(static_cast<std::int32_t>(random.below(23)));
      s.token_types.push_back(i > length / 2);
    }
    all.push_back(s);
  }
  return all;
}

/// Moves every value a little, so that no bias is 0 and no norm weight is 1.
inline void disturb(const nn::ParameterSet& parameters) {
  Random random(9);
  std::vector<double> values = ops::to_host<double>(parameters.values());
  for (double& v : values) v += 0.2 * (2 * random.uniform() - 1);
  ops::copy_into(ops::from_host(values, parameters.values().shape(), parameters.backend()), parameters.values());
}

inline Tensor indices(const std::vector<std::int32_t>& values, Backend& backend) {
  return ops::from_host(values, {static_cast<Dim>(values.size())}, backend);
}

}  // namespace bertrand::small
