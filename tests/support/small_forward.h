// A BERT with random weights that predicts words, run by inference::Forward and without it.
#pragma once
#include <vector>

#include "bert/inference/forward.h"
#include "bert/network/heads.h"
#include "nn/parameter_set.h"
#include "tensor/random.h"

namespace support {

/// Sequences of these lengths with random ids.
inline std::vector<bertrand::bert::Sequence> sequences(const std::vector<std::size_t>& lengths, std::uint64_t key) {
  bertrand::Random random(key);
  std::vector<bertrand::bert::Sequence> all;
  for (const std::size_t length : lengths) {
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>(random.below(50)));
    all.push_back(bertrand::bert::sequence_of(ids, static_cast<std::int64_t>(length / 2), key));
  }
  return all;
}

struct ForwardSizes {
  bertrand::Dim layers = 2, hidden = 32;
};

class SmallForward {
 public:
  explicit SmallForward(bertrand::Backend& backend, bertrand::DType dtype = bertrand::DType::f32,
                        const ForwardSizes& sizes = {})
      : model_({.vocab_size = 50,
                .hidden_size = sizes.hidden,
                .num_hidden_layers = sizes.layers,
                .num_attention_heads = sizes.hidden / 16,
                .intermediate_size = 2 * sizes.hidden,
                .max_position_embeddings = 1100}),
        parameters_(model_, backend, {.dtype = dtype}),
        backend_(backend) {}

  bertrand::inference::Forward forward() const {
    return {backend_, [this](const auto& batch, const bertrand::Tensor& rows) { return run(batch, rows); }};
  }
  /// What it is to say.
  std::vector<float> expected(const std::vector<bertrand::bert::Sequence>& given,
                              const std::vector<std::int32_t>& rows = {}) const {
    using namespace bertrand;
    const NoGrad no_graph;
    const Tensor on_device = rows.empty() ? Tensor() : ops::from_host(rows, {std::ssize(rows)}, backend_);
    return ops::to_host<float>(run(bert::pack(given, backend_), on_device).value());
  }
  mutable int runs = 0;  ///< how often the network was called

 private:
  bertrand::Variable run(const bertrand::bert::PackedBatch& batch, const bertrand::Tensor& rows) const {
    ++runs;
    return model_.predictions(model_.bert(batch, {}, rows), model_.bert.embeddings.word_embeddings.weight);
  }

  bertrand::bert::ForMaskedLm model_;
  bertrand::nn::ParameterSet parameters_;
  bertrand::Backend& backend_;
};

}  // namespace support
