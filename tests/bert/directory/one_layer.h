// The sizes of a model of one layer, for tests of what is written and read.
#pragma once
#include "bert/network/config.h"

namespace support {

inline const bertrand::bert::Config kOneLayer{.vocab_size = 7,
                                              .hidden_size = 4,
                                              .num_hidden_layers = 1,
                                              .num_attention_heads = 2,
                                              .intermediate_size = 6,
                                              .max_position_embeddings = 5};

}  // namespace support
