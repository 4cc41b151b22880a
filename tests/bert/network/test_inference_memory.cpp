// What inference asks of the system once it runs.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "bert/network/heads.h"
#include "bert/network/small_bert.h"

using namespace bertrand;

namespace {

/// Pages that the system gave to this process so far.
long pages() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

}  // namespace

TEST_CASE("a server that has met its longest batch takes no more memory from the system, in any precision") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(name_of(dtype));
    const std::unique_ptr<Backend> backend = open_cpu({.threads = 2});
    bert::ForSequenceClassification model({.vocab_size = 50,
                                           .hidden_size = 128,
                                           .num_hidden_layers = 2,
                                           .num_attention_heads = 4,
                                           .intermediate_size = 512,
                                           .max_position_embeddings = 128},
                                          3);
    const nn::ParameterSet parameters(model, *backend, {.dtype = dtype});
    const NoGrad guard;
    const auto answer = [&](std::size_t batch, std::size_t length) {
      std::vector<bert::Sequence> sequences(batch);
      for (bert::Sequence& sequence : sequences) {
        sequence.token_ids.assign(length, 7);
        sequence.token_types.assign(length, 0);
      }
      ops::to_host<float>(ops::cast(model(bert::pack(sequences, *backend), {}).value(), DType::f32));
    };
    for (int i = 0; i < 3; ++i) answer(16, 128);
    long least = std::numeric_limits<long>::max();  // the system may take pages away and give them again
    for (int round = 0; round < 3; ++round) {
      const long before = pages();
      for (std::size_t i = 0; i < 50; ++i) answer(1 + i * 7 % 16, 1 + i * 37 % 128);
      least = std::min(least, pages() - before);
    }
    CHECK(least < 200);  // four for each answer
  }
}
