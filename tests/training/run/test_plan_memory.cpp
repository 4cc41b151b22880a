// What a run takes is what its plan predicts.
#include <doctest/doctest.h>

#include "support/small_pretraining.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

struct Memory {
  double predicted, measured;
};

struct Batch {
  std::int64_t size, micro_batch;
  bool alike = true;  // examples of one length
  std::int64_t epochs = 2;
};

Memory memory_of(const bert::Config& config, DType dtype, const Batch& batch) {
  const auto backend = open_cpu({.threads = 2});
  const distributed::Replica self(*backend);
  support::SmallPretraining objective(config, self);
  objective.alike = batch.alike;
  Settings settings = pretraining_defaults();
  settings.precision = {dtype};
  settings.batch_size = batch.size;
  settings.micro_batch_size = batch.micro_batch;
  settings.steps = batch.epochs * 24 / batch.size;
  const Plan plan = make_plan(settings, objective, self);
  CHECK(backend->memory().peak == 0);  // a plan takes nothing
  return {static_cast<double>(plan.memory.total()),
          static_cast<double>(support::peak_of_steps(settings, plan, objective, self))};
}

}  // namespace

TEST_CASE("the predicted memory is within a hundredth of the peak in any model, type and batch, with accumulation") {
  const bert::Config wide{.vocab_size = 64,
                          .hidden_size = 256,
                          .num_hidden_layers = 1,
                          .num_attention_heads = 4,
                          .intermediate_size = 1024,
                          .max_position_embeddings = 32};
  const bert::Config deep{.vocab_size = 500,
                          .hidden_size = 32,
                          .num_hidden_layers = 8,
                          .num_attention_heads = 2,
                          .intermediate_size = 64,
                          .max_position_embeddings = 128};
  const bert::Config words{.vocab_size = 9000,
                           .hidden_size = 64,
                           .num_hidden_layers = 2,
                           .num_attention_heads = 4,
                           .intermediate_size = 256,
                           .max_position_embeddings = 64};
  for (const bert::Config& config : {support::kSmallPretraining, wide, deep, words})
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const auto& [batch, micro_batch] : {std::pair{8, 8}, {8, 3}, {12, 1}}) {
        const auto [predicted, measured] = memory_of(config, dtype, {.size = batch, .micro_batch = micro_batch});
        INFO(name_of(dtype) << ", hidden " << config.hidden_size << ", batch " << batch << " of " << micro_batch << ": "
                            << predicted << " and " << measured);
        CHECK(predicted == doctest::Approx(measured).epsilon(0.01));
        CHECK(1.001 * predicted >= measured);  // kernels take a little for partial sums
      }
}

TEST_CASE("the predicted memory bounds every epoch of examples of different lengths") {
  for (const auto& [batch, micro_batch] : {std::pair{8, 8}, {8, 3}, {12, 1}, {4, 2}}) {
    const auto [predicted, measured] =
        memory_of(support::kSmallPretraining, DType::f32,
                  {.size = batch, .micro_batch = micro_batch, .alike = false, .epochs = 40});
    INFO("batch " << batch << " of " << micro_batch << ": " << predicted << " and " << measured);
    CHECK(1.001 * predicted >= measured);  // kernels take a little for partial sums
    CHECK(predicted <= 1.1 * measured);
  }
}
