// A very small BERT with any head, for tests of what is written of it.
#pragma once
#include "bert/network/architecture.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"

namespace support {

struct ExportedBert {
  explicit ExportedBert(bertrand::bert::Architecture kind, bertrand::Activation activation = bertrand::Activation::gelu,
                        bertrand::bert::PoolerLayer layer = bertrand::bert::PoolerLayer::present)
      : config{.vocab_size = 31,
               .hidden_size = 12,
               .num_hidden_layers = 2,
               .num_attention_heads = 3,
               .intermediate_size = 28,
               .hidden_act = activation,
               .max_position_embeddings = 23,
               .labels = {"a", "b", "c"}},
        architecture(kind),
        pooler_layer(layer),
        backend(bertrand::open_cpu({.threads = 1})),
        network(bertrand::bert::make_network(kind, config, {.outputs = 3, .pooler_layer = layer})),
        parameters(*network, *backend, bertrand::nn::ParameterSet::Options{.gradients = false}) {}

  bertrand::bert::Config config;
  bertrand::bert::Architecture architecture;
  bertrand::bert::PoolerLayer pooler_layer;
  std::unique_ptr<bertrand::Backend> backend;
  std::unique_ptr<bertrand::nn::Module> network;
  bertrand::nn::ParameterSet parameters;
};

}  // namespace support
