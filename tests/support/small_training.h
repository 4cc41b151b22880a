// A BERT that learns a few sequences by heart, on any backend and in any type. By default it has two layers and some
// 25,000 weights.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bert/network/heads.h"
#include "optim/optimizer.h"
#include "tensor/backend.h"
#include "tensor/random.h"

namespace support {

struct TrainingSizes {
  bertrand::Dim layers = 2, hidden = 32;
  std::vector<std::size_t> lengths = {9, 20, 4};
  std::string preset = {};  ///< of bert::Config: if given, layers and hidden are not used
};

/// The model with its optimizer and one batch; heads of 16 columns, which the tensor cores take.
class SmallTraining {
 public:
  SmallTraining(bertrand::DType dtype, bertrand::Backend& backend, const TrainingSizes& sizes = {})
      : model_(config(sizes)),
        parameters_(model_, backend, {.dtype = dtype}),
        optimizer_(parameters_, {.method = bertrand::optim::Method::adamw, .weight_decay = 0.01, .clip_norm = 1}),
        batch_(bertrand::bert::pack(sequences(sizes), backend)),
        targets_(targets(backend)) {}

  /// Dropout draws as in step number `step`. Leaves the loss on the device.
  bertrand::Tensor step(std::uint64_t step) {
    parameters_.zero_gradients();
    const auto result = model_(batch_, targets_, batch_.randomness(step), bertrand::bert::ForPretraining::Keep::losses);
    const bertrand::Variable loss = add(result.masked_lm_loss, result.next_sentence_loss);
    bertrand::backward(loss, optimizer_.loss_scale().gradient_of_loss());
    optimizer_.step(3e-3);
    return loss.value();
  }
  std::vector<double> losses(int steps) {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) all.push_back(bertrand::ops::item(step(static_cast<std::uint64_t>(i))));
    return all;
  }
  std::vector<double> masters() const { return bertrand::ops::to_host<double>(parameters_.masters()); }

 private:
  static bertrand::bert::Config config(const TrainingSizes& sizes) {
    if (!sizes.preset.empty()) return bertrand::bert::Config::preset(sizes.preset);
    return {.vocab_size = 64,
            .hidden_size = sizes.hidden,
            .num_hidden_layers = sizes.layers,
            .num_attention_heads = sizes.hidden / 16,
            .intermediate_size = 2 * sizes.hidden,
            .max_position_embeddings = 32};
  }
  static std::vector<bertrand::bert::Sequence> sequences(const TrainingSizes& sizes) {
    bertrand::Random random(4);
    std::vector<bertrand::bert::Sequence> all;
    for (const std::size_t length : sizes.lengths) {
      bertrand::bert::Sequence s{.key = 40 + length};
      for (std::size_t i = 0; i < length; ++i) {
        s.token_ids.push_back(static_cast<std::int32_t>(random.below(64)));
        s.token_types.push_back(i > length / 2);
      }
      all.push_back(s);
    }
    return all;
  }
  bertrand::bert::ForPretraining::Targets targets(bertrand::Backend& backend) const {
    std::vector<std::int32_t> rows, labels, next;
    for (bertrand::Dim row = 1; row < batch_.tokens; row += 4) {
      rows.push_back(static_cast<std::int32_t>(row));
      labels.push_back(static_cast<std::int32_t>(row * 7 % 64));
    }
    for (bertrand::Dim s = 0; s < batch_.sequences; ++s) next.push_back(static_cast<std::int32_t>(s % 2));
    const auto on_device = [&](const std::vector<std::int32_t>& values) {
      return bertrand::ops::from_host(values, {static_cast<bertrand::Dim>(values.size())}, backend);
    };
    return {on_device(rows), on_device(labels), on_device(next), static_cast<double>(rows.size()),
            static_cast<double>(next.size())};
  }

  bertrand::bert::ForPretraining model_;
  bertrand::nn::ParameterSet parameters_;
  bertrand::optim::Optimizer optimizer_;
  bertrand::bert::PackedBatch batch_;
  bertrand::bert::ForPretraining::Targets targets_;
};

}  // namespace support
