// What a run takes is what its plan predicts.
#include "training/run/memory_plan.h"

#include <doctest/doctest.h>

#include <tuple>

#include "cuda_emulated/emulated_gpu.h"
#include "distributed/gradient_sum.h"
#include "support/counted.h"
#include "support/epoch_numbers.h"
#include "support/gibibyte.h"
#include "support/small_pretraining.h"
#include "tensor/backends.h"
#include "tensor/dry_run.h"
#include "training/step/step.h"

using namespace bertrand;
using namespace bertrand::training;
using support::Counted;
using support::OfGibibyte;
using support::one_of;
using support::plan_of;
using support::settings_of;

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
  bert::Config words = support::kSmallPretraining;
  words.vocab_size = 9000;  // their gradients take more than activations
  const auto backend = open_cpu({.threads = 1});
  Counted objective;
  objective.evaluated = 1000;
  const Plan plan = make_plan(settings_of(4, 3), objective, distributed::Replica(*backend));
  CHECK(plan.memory.activations >= std::size_t{1000} * 1000 * 48);
}

TEST_CASE("memory is that of the largest micro-batch, and every part is counted") {
  const Plan plan = plan_of(settings_of(4, 3));
  CHECK(plan.memory.parameters == 60);
  CHECK(plan.memory.gradients == 60);
  CHECK(plan.memory.moments == 120);
  CHECK(plan.memory.accumulation == 60);  // two micro-batches: one sum waits
  CHECK(plan.memory.total() == 60 + 60 + 120 + 60 + plan.memory.activations);
  CHECK(plan.memory.data == 5'000'000);
  // Examples 9, 10 and 11, which may meet in the second epoch: 33,000 points, their three outputs, and the targets and
  // gradients of these.
  CHECK(static_cast<double>(plan.memory.activations) == doctest::Approx(33'000 * (16 + 3 * 12)).epsilon(0.05));
}

TEST_CASE("a last step of fewer micro-batches, which may need more sums than a full one, is planned") {
  Counted objective;
  objective.length = [](std::int64_t) { return 1; };
  const auto backend = open_cpu({.threads = 1});
  for (const auto& [replicas, micro_batches, of_last_step] :
       {std::tuple{2, 2048, 1537}, {4, 2048, 1537}, {2, 1000, 769}}) {
    objective.count = micro_batches;
    const Plan plan = make_plan(settings_of(micro_batches, 1), objective, one_of(replicas, *backend));
    const auto share = distributed::share_of(of_last_step, replicas - 1, replicas);
    CHECK(plan.memory.accumulation >= 60 * distributed::GradientSum::buffers(share, of_last_step));
  }
}

TEST_CASE("a half type has masters, and its sums are as wide as these") {
  Settings settings = settings_of(4, 3);
  settings.precision = {DType::bf16};
  const MemoryPlan two = plan_of(settings).memory;
  CHECK(two.parameters == 15 * (2 + 4));
  CHECK(two.gradients == 15 * 2);
  CHECK(two.moments == 15 * 2 * 4);
  CHECK(two.accumulation == 15 * 2 * 4);  // of two micro-batches one sum waits, and the last gradient is copied
  settings.micro_batch_size = 4;
  CHECK(plan_of(settings).memory.accumulation == 0);
}

TEST_CASE("processes of one host share its memory, and each has the examples and outputs of its own replicas") {
  Counted objective;
  const auto backend = open_cpu({.threads = 1});
  OfGibibyte host(*backend);
  const auto plan_on = [&](int processes, const Settings& settings) {
    return make_plan(settings, objective, one_of(processes, host));
  };
  Settings settings = settings_of(8, 1);
  CHECK(plan_on(2, settings).memory.available == OfGibibyte::kBytes / 2);
  objective.of_step_example = 1000;
  CHECK(plan_on(2, settings).memory.data == 5'000'000 + 4 * 1000);
  settings.replicas = 2;
  const Plan without = plan_on(2, settings);
  CHECK(without.memory.available == OfGibibyte::kBytes / 4);
  objective.outputs = 7'000'000;
  const Plan with = plan_on(2, settings);
  CHECK(with.memory.process - with.resident == without.memory.process - without.resident + 2 * objective.outputs);
}

TEST_CASE("memory that is just enough is enough, of the device and of what --memory says") {
  Counted objective;
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  Settings settings = settings_of(8, 8);
  Plan plan = make_plan(settings, objective, self);
  plan.memory.available = plan.memory.total();
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  settings.most_memory = plan.memory.process;
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  --*settings.most_memory;
  CHECK_THROWS_AS(check_memory(settings, plan, objective, self), Error);
  settings.most_memory.reset();
  --plan.memory.available;
  CHECK_THROWS_AS(check_memory(settings, plan, objective, self), Error);
}

TEST_CASE("the micro-batch that would fit is found, and a run that takes more than there is refused with it") {
  Counted objective;
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  const Settings settings = settings_of(8, 8);
  Plan plan = make_plan(settings, objective, self);
  CHECK(plan.memory.available > plan.memory.total());
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  for (const std::int64_t micro_batch : {7, 4, 1}) {
    const std::size_t enough = plan_of(settings_of(8, micro_batch)).memory.total();
    const std::int64_t fits = fitting_micro_batch(settings, plan, objective, self, enough);
    CHECK(fits >= 1);
    CHECK(fits < 8);
    CHECK(plan_of(settings_of(8, fits)).memory.total() <= enough);
    CHECK(plan_of(settings_of(8, fits + 1)).memory.total() > enough);
    CHECK(fitting_micro_batch(settings, plan, objective, self, enough - 1) == micro_batch - 1);
    plan.memory.available = enough;
    CHECK_THROWS_WITH_AS(check_memory(settings, plan, objective, self),
                         doctest::Contains(fmt::format("; hint: --micro-batch-size {} would fit", fits).c_str()),
                         Error);
  }
  plan.memory.available = 100;
  CHECK_THROWS_WITH_AS(check_memory(settings, plan, objective, self),
                       doctest::Contains("; hint: no smaller --micro-batch-size would fit"), Error);
}

TEST_CASE("the largest micro-batch that fits is found though a smaller one may wait with more sums and take more") {
  const bert::Config words{.vocab_size = 9000,
                           .hidden_size = 32,
                           .num_hidden_layers = 1,
                           .num_attention_heads = 2,
                           .intermediate_size = 64,
                           .max_position_embeddings = 16};
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  support::SmallPretraining objective(words, self);
  const Settings settings = settings_of(24, 14);
  std::vector<std::size_t> taken = {0};  // by the size of the micro-batch
  for (std::int64_t size = 1; size <= 14; ++size)
    taken.push_back(make_plan(settings_of(24, size), objective, self).memory.total());
  CHECK(taken[1] > taken[8]);
  const Plan plan = make_plan(settings, objective, self);
  for (const std::size_t bytes : taken) {
    std::int64_t fits = 0;
    for (std::size_t size = 1; size < 14; ++size)
      if (taken[size] <= bytes) fits = static_cast<std::int64_t>(size);
    CHECK(fitting_micro_batch(settings, plan, objective, self, bytes) == fits);
  }
}

TEST_CASE("activations computed again are named where a larger micro-batch fits with them, and nowhere else") {
  bert::Config deep = support::kSmallPretraining;
  deep.num_hidden_layers = 8;
  deep.max_position_embeddings = 256;
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  support::SmallPretraining objective(deep, self);
  Settings settings = settings_of(8, 8), recomputing = settings;
  recomputing.recompute_activations = 1;
  const auto taken = [&](std::int64_t size, int recomputed) {
    Settings of_size = settings_of(8, size);
    of_size.recompute_activations = recomputed;
    return make_plan(of_size, objective, self).memory.total();
  };
  const auto hint = [&](const Settings& of, std::size_t bytes) {
    return fitting_hint(of, make_plan(of, objective, self), objective, self, bytes);
  };
  CHECK(taken(8, 1) < taken(2, 0));
  CHECK(taken(1, 1) < taken(1, 0));
  CHECK(hint(settings, taken(2, 0)) ==
        "hint: --micro-batch-size 2 or --micro-batch-size 8 with --recompute-activations 1 would fit");
  CHECK(hint(settings, taken(1, 1)) == "hint: --micro-batch-size 1 with --recompute-activations 1 would fit");
  CHECK(hint(settings, taken(1, 1) - 1) == "hint: no smaller --micro-batch-size would fit");
  CHECK(hint(recomputing, taken(4, 1)) == "hint: --micro-batch-size 4 would fit");
}

TEST_CASE("on a GPU a twentieth of the memory stays free, and --memory bounds what its replicas take together") {
  Counted objective;
  const auto emulated = bertrand::testing::emulated_gpu();
  OfGibibyte gpu(*emulated);
  const distributed::Replica self(gpu);
  Settings settings = settings_of(8, 8);
  Plan plan = make_plan(settings, objective, self);
  CHECK(plan.memory.available == OfGibibyte::kBytes);
  settings.replicas = 3;
  settings.most_memory = 3 * plan.memory.total();
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  --*settings.most_memory;
  CHECK_THROWS_AS(check_memory(settings, plan, objective, self), Error);
  settings = settings_of(8, 8);
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  plan.memory.available = plan.memory.total() * 20 / 19 + 2;
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  plan.memory.available = plan.memory.total() * 20 / 19 - 2;
  CHECK_THROWS_WITH_AS(check_memory(settings, plan, objective, self), doctest::Contains("; hint: --micro-batch-size"),
                       Error);
}

TEST_CASE("the plan of several processes has room for each addend that comes from another one") {
  constexpr std::size_t kOfAddend = std::size_t{1} << 40;  // nothing else of the plan comes near
  struct Processes : support::OneOfMany {
    using OneOfMany::OneOfMany;
    std::size_t bytes_of_sums(DType, std::size_t addends) const override { return addends * kOfAddend; }
  };
  Counted objective;
  const auto backend = open_cpu({.threads = 1});
  const auto addends = [&](int processes) {
    const distributed::Replica self(*backend, std::make_unique<Processes>(*backend, processes));
    return make_plan(settings_of(8, 1), objective, self).memory.process / kOfAddend;
  };
  CHECK(addends(1) == 0);
  CHECK(addends(2) == 3);  // of four in a row: 3, (4 + 5), 6. Those of 8 are one, and 4, (5 + 6) of 7.
  CHECK(addends(3) == 4);  // of 7: 3 and 4, 5 and 6
  CHECK(addends(8) == 7);
}
