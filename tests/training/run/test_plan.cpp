#include "training/run/data_order.h"
#include "training/run/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "cuda_emulated/emulated_gpu.h"
#include "distributed/replica_group.h"
#include "nn/layers.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::training;
using bertrand::testing::emulated_gpu;

namespace {

/// 10 examples an epoch, example i of i + 1 tokens; every second epoch has two more. A token is a
/// thousand points of four numbers.
struct Counted : Objective {
  Backend* backend = nullptr;
  std::int64_t count = 10;
  nn::Module root;
  nn::Linear linear{{&root, "linear"}, {.in_features = 4, .out_features = 3}};
  StepExamples step;

  nn::Module& model() override { return root; }
  std::int64_t last_epoch = 0;
  std::int64_t examples(std::int64_t epoch) override {
    last_epoch = std::max(last_epoch, epoch);
    return count + 2 * (epoch % 2);
  }
  std::int64_t begin_step(const StepExamples& examples, const distributed::Share&) override {
    step = examples;
    return 0;
  }
  std::vector<LossPart> loss(std::int64_t first, std::int64_t number, std::uint64_t) override {
    Dim points = 0;
    for (std::int64_t i = first; i < first + number; ++i)
      points += 1000 * (step.numbers[static_cast<std::size_t>(i)] + 1);
    const Variable y = linear(Variable(ops::full({points, 4}, 1, DType::f32, *backend)));
    return {{"loss", mse(y, ops::full({points, 3}, 0, DType::f32, *backend), 1)}};
  }
  Metrics evaluate() override { return {}; }
  std::optional<double> score(const Metrics&) const override { return std::nullopt; }
  std::unique_ptr<Objective> twin(const distributed::Replica& self) const override {
    auto twin = std::make_unique<Counted>();
    twin->backend = &self.backend();
    return twin;
  }
  std::size_t data_bytes() const override { return 5'000'000; }
  std::int64_t tokens(std::int64_t, std::int64_t example) const override { return example + 1; }
};

Settings settings_of(std::int64_t batch, std::int64_t micro_batch) {
  Settings settings = pretraining_defaults();
  settings.batch_size = batch;
  settings.micro_batch_size = micro_batch;
  settings.shuffle = false;
  settings.steps = 4;
  settings.schedule.warmup_steps = 0;  // as complete() leaves it
  return settings;
}

Plan plan_of(const Settings& settings, std::int64_t count = 10) {
  Counted objective;
  objective.count = count;
  const auto backend = open_cpu({.threads = 1});
  return make_plan(settings, objective, distributed::Replica(*backend));
}

}  // namespace

TEST_CASE(
    "an epoch's order holds every example once, follows from seed and epoch, and is the file's without shuffling") {
  Settings settings;
  settings.seed = 5;
  std::vector<std::int64_t> file_order(50);
  std::iota(file_order.begin(), file_order.end(), 0);
  const auto order = epoch_order(settings, 0, 50);
  CHECK(order != file_order);
  CHECK(order == epoch_order(settings, 0, 50));
  CHECK(order != epoch_order(settings, 1, 50));
  CHECK(std::is_permutation(order.begin(), order.end(), file_order.begin()));
  settings.seed = 6;
  CHECK(order != epoch_order(settings, 0, 50));
  settings.shuffle = false;
  CHECK(epoch_order(settings, 3, 50) == file_order);
}

TEST_CASE("steps and epochs follow from each other, the last batch of an epoch being smaller") {
  Settings settings = settings_of(4, 3);
  Plan plan = plan_of(settings);
  CHECK(plan.examples_per_epoch == 10);
  CHECK(plan.steps_per_epoch == 3);
  CHECK(plan.micro_batches == 2);
  CHECK(plan.total_steps == 4);
  CHECK(plan.epochs == doctest::Approx(4.0 / 3));
  CHECK(plan.tokens_per_example == 5.5);
  CHECK(plan.parameters == 15);

  settings.steps = 0;
  for (const auto& [epochs, steps] :
       std::vector<std::pair<double, std::int64_t>>{{1, 3}, {2, 6}, {0.5, 2}, {1.0 / 3, 1}, {1.5, 5}, {1e-6, 1}}) {
    CAPTURE(epochs);
    settings.epochs = epochs;
    plan = plan_of(settings);
    CHECK(plan.total_steps == steps);
    CHECK(plan.epochs == epochs);
  }
}

TEST_CASE("of many epochs not all are counted, which would take making them") {
  Settings settings = settings_of(4, 3);
  settings.steps = 0;
  settings.epochs = 1e6;
  Counted objective;
  const auto backend = open_cpu({.threads = 1});
  CHECK(make_plan(settings, objective, distributed::Replica(*backend)).total_steps == 3'000'000);
  CHECK(objective.last_epoch < 1000);
}

TEST_CASE("a share of warm-up is one of all steps") {
  Settings settings = settings_of(4, 4);
  settings.steps = 19;
  settings.warmup_ratio = 0.1;
  CHECK(plan_of(settings).schedule.warmup_steps == 1);
  CHECK(plan_of(settings).schedule.total_steps == 19);
  settings.warmup_ratio = -1;
  settings.schedule.warmup_steps = 7;
  CHECK(plan_of(settings).schedule.warmup_steps == 7);
}

TEST_CASE("memory is that of the largest micro-batch, and every part is counted") {
  const Plan plan = plan_of(settings_of(4, 3));
  CHECK(plan.memory.parameters == 60);
  CHECK(plan.memory.gradients == 60);
  CHECK(plan.memory.moments == 120);
  CHECK(plan.memory.accumulation == 60);  // two micro-batches: one sum waits
  CHECK(plan.memory.total() == 60 + 60 + 120 + 60 + plan.memory.activations);
  CHECK(plan.memory.data == 5'000'000);
  // Examples 8 and 9, alone in the last step: 19,000 points, their three outputs, and the targets and gradients of
  // these.
  CHECK(static_cast<double>(plan.memory.activations) == doctest::Approx(19'000 * (16 + 3 * 12)).epsilon(0.05));
}

TEST_CASE("the micro-batch that would fit is found, and a run that takes more than there is refused with it") {
  Counted objective;
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  const Settings settings = settings_of(8, 8);
  Plan plan = make_plan(settings, objective, self);
  CHECK(plan.memory.available > plan.memory.total());
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  Settings two_replicas = settings;  // which share what there is
  two_replicas.replicas = 2;
  CHECK(static_cast<double>(plan_of(two_replicas).memory.available) ==
        doctest::Approx(static_cast<double>(plan.memory.available) / 2).epsilon(0.2));
  for (const std::int64_t micro_batch : {7, 4, 1}) {
    const std::size_t enough = plan_of(settings_of(8, micro_batch)).memory.total();
    const std::int64_t fits = fitting_micro_batch(settings, plan, objective, self, enough);
    CHECK(fits >= 1);
    CHECK(fits < 8);
    CHECK(plan_of(settings_of(8, fits)).memory.total() <= enough);
    CHECK(plan_of(settings_of(8, fits + 1)).memory.total() > enough);
    plan.memory.available = enough;
    CHECK_THROWS_WITH_AS(check_memory(settings, plan, objective, self),
                         doctest::Contains(fmt::format("; hint: --micro-batch-size {} would fit", fits).c_str()),
                         Error);
  }
  plan.memory.available = 100;
  CHECK_THROWS_WITH_AS(check_memory(settings, plan, objective, self),
                       doctest::Contains("; hint: not even a --micro-batch-size of 1 would fit"), Error);
}

TEST_CASE("on a card a twentieth of the memory stays free for what no plan counts") {
  Counted objective;
  const auto card = emulated_gpu();
  const distributed::Replica self(*card);
  const Settings settings = settings_of(8, 8);
  Plan plan = make_plan(settings, objective, self);
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  plan.memory.available = plan.memory.total() * 20 / 19 + 2;
  CHECK_NOTHROW(check_memory(settings, plan, objective, self));
  plan.memory.available = plan.memory.total() * 20 / 19 - 2;
  CHECK_THROWS_WITH_AS(check_memory(settings, plan, objective, self), doctest::Contains("; hint: --micro-batch-size"),
                       Error);
}

TEST_CASE("the plan is said in a few lines with their units") {
  Plan plan = plan_of(settings_of(4, 3));
  plan.memory.activations = 19'000;
  plan.memory.available = 2'000'000'000;
  CHECK(plan.text() ==
        "plan\n"
        "  step        4 examples in 2 micro-batches of at most 3, about 22 tokens\n"
        "  epoch       10 examples, 3 steps\n"
        "  run         4 steps = 1.333 epochs, about 13 examples, 73 tokens\n"
        "  rate        up to 0.0001 after 0 steps of warm-up\n"
        "  parameters  15 in f32\n"
        "  memory      19.3 kB predicted of 2 GB available, and 5 MB of examples\n"
        "              parameters 60 B, gradients 60 B, optimizer 120 B, activations 19 kB, sums over micro-batches 60 "
        "B\n");
}

TEST_CASE("a plan without an example is refused") {
  CHECK_THROWS_WITH_AS(plan_of(settings_of(4, 4), 0), "training data: expected at least one example, got none", Error);
}
