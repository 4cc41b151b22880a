#include "apps/training/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "nn/layers.h"
#include "tensor/error.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

/// 10 examples an epoch, example i of i + 1 tokens; every second epoch has two more.
struct Counted : Objective {
  std::int64_t count = 10;
  nn::Module root;
  nn::Linear linear{{&root, "linear"}, {.in_features = 4, .out_features = 3}};

  nn::Module& model() override { return root; }
  std::int64_t examples(std::int64_t epoch) override { return count + 2 * (epoch % 2); }
  std::int64_t begin_step(const StepExamples&, const distributed::Share&) override { return 0; }
  std::vector<LossPart> loss(std::int64_t, std::int64_t, std::uint64_t) override { return {}; }
  Metrics evaluate() override { return {}; }
  std::optional<double> score(const Metrics&) const override { return std::nullopt; }
  bert::DirectoryFiles directory() const override { fail(Failure::bug, "not asked for"); }
  std::size_t activation_bytes(const StepExamples& micro_batch, DType) const override {
    std::size_t tokens = 0;
    for (const std::int64_t i : micro_batch.numbers) tokens += static_cast<std::size_t>(i + 1);
    return 1000 * tokens;
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
  return settings;
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
  Counted objective;
  Settings settings = settings_of(4, 3);
  Plan plan = make_plan(settings, objective);
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
    plan = make_plan(settings, objective);
    CHECK(plan.total_steps == steps);
    CHECK(plan.epochs == epochs);
  }
}

TEST_CASE("a share of warm-up is one of all steps") {
  Counted objective;
  Settings settings = settings_of(4, 4);
  settings.steps = 19;
  settings.warmup_ratio = 0.1;
  CHECK(make_plan(settings, objective).schedule.warmup_steps == 1);
  CHECK(make_plan(settings, objective).schedule.total_steps == 19);
  settings.warmup_ratio = -1;
  settings.schedule.warmup_steps = 7;
  CHECK(make_plan(settings, objective).schedule.warmup_steps == 7);
}

TEST_CASE("memory is that of the largest micro-batch, and every part is counted") {
  Counted objective;
  const Plan plan = make_plan(settings_of(4, 3), objective);
  CHECK(plan.memory.parameters == 60);
  CHECK(plan.memory.gradients == 60);
  CHECK(plan.memory.moments == 120);
  CHECK(plan.memory.accumulation == 60);     // two micro-batches: one sum waits
  CHECK(plan.memory.activations == 19'000);  // examples 8 and 9, alone in the last step
  CHECK(plan.memory.total() == 60 + 60 + 120 + 60 + 19'000);
  CHECK(plan.memory.data == 5'000'000);
}

TEST_CASE("the plan is said in a few lines with their units") {
  Counted objective;
  Settings settings = settings_of(4, 3);
  CHECK(make_plan(settings, objective).text() ==
        "plan\n"
        "  step        4 examples in 2 micro-batches of at most 3, about 22 tokens\n"
        "  epoch       10 examples, 3 steps\n"
        "  run         4 steps = 1.333 epochs, about 13 examples, 73 tokens\n"
        "  rate        up to 0.0001 after 0 steps of warm-up\n"
        "  parameters  15 in f32\n"
        "  memory      19.3 kB predicted, and 5 MB of examples\n"
        "              parameters 60 B, gradients 60 B, optimizer 120 B, activations 19 kB, sums over micro-batches 60 "
        "B\n");
}

TEST_CASE("a plan without an example is refused") {
  Counted objective;
  objective.count = 0;
  CHECK_THROWS_WITH_AS(make_plan(settings_of(4, 4), objective),
                       "training data: expected at least one example, got none", Error);
}
