#include "training/run/plan.h"

#include <doctest/doctest.h>

#include "support/counted.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::training;
using support::Counted;
using support::one_of;
using support::plan_of;
using support::settings_of;

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

  settings.steps.reset();
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
  settings.steps.reset();
  settings.epochs = 1e6;
  Counted objective;
  const auto backend = open_cpu({.threads = 1});
  CHECK(make_plan(settings, objective, distributed::Replica(*backend)).total_steps == 3'000'000);
  CHECK(objective.last_epoch < 1000);
}

TEST_CASE("of many examples neither all epochs are counted nor all tokens") {
  Settings settings = settings_of(4, 3);
  settings.steps.reset();
  settings.epochs = 45;
  Counted objective;
  objective.count = 6'000'000;
  const auto backend = open_cpu({.threads = 1});
  const Plan plan = make_plan(settings, objective, distributed::Replica(*backend));
  CHECK(plan.total_steps == 45 * 1'500'000 + 22);
  CHECK(plan.tokens_per_example == 1 + 6000 * 499.5);  // of every 6000th
  CHECK(objective.last_epoch == 1);
}

TEST_CASE("a share of warm-up is one of all steps") {
  Settings settings = settings_of(4, 4);
  settings.steps = 19;
  settings.warmup_ratio = 0.1;
  CHECK(plan_of(settings).schedule.warmup_steps == 1);
  CHECK(plan_of(settings).schedule.total_steps == 19);
  settings.warmup_ratio.reset();
  settings.schedule.warmup_steps = 7;
  CHECK(plan_of(settings).schedule.warmup_steps == 7);
}

TEST_CASE("settings that no one means are doubted") {
  Settings settings = settings_of(4, 4);  // of 4 steps
  CHECK(doubts_of(settings, plan_of(settings)).empty());
  settings.schedule.warmup_steps = 3;
  settings.batch_size = 32;  // which no one has set
  settings.threads = available_cores();
  CHECK(doubts_of(settings, plan_of(settings)).empty());
  settings.schedule.warmup_steps = 4;
  settings.batch_size = 40;
  settings.threads = 5000;
  const std::vector<std::string> doubts = doubts_of(settings, plan_of(settings));
  REQUIRE(doubts.size() == 3);
  CHECK(doubts[0] == "--warmup-steps: 4 of warm-up in a run of 4: the rate never falls");
  CHECK(doubts[1] == "--batch-size: a step has 10 examples, as many as there are, not 40");
  CHECK(doubts[2].starts_with("--threads: 5000 on "));
  settings.warmup_ratio = 1;
  CHECK(doubts_of(settings, plan_of(settings))[0].starts_with("--warmup-ratio: 4 of warm-up in a run of 4: "));
}

TEST_CASE("more replicas than micro-batches are refused with what makes enough of them") {
  Counted objective;  // of 10 examples
  const auto backend = open_cpu({.threads = 1});
  Settings settings = settings_of(4, 4);
  const auto hints_batch = [&](int replicas) {
    settings.replicas = replicas;
    const std::string line =
        support::refusal(Failure::usage, [&] { make_plan(settings, objective, one_of(replicas, *backend)); });
    CHECK(line != "");
    return line.find(fmt::format("--batch-size {} with --micro-batch-size 1", replicas)) != std::string::npos;
  };
  CHECK_FALSE(hints_batch(4));  // as many as a step has examples: a smaller micro-batch is enough
  CHECK(hints_batch(5));
  CHECK(hints_batch(10));
  CHECK_FALSE(hints_batch(11));
  settings.resume = true;  // with its own batch size only
  CHECK_FALSE(hints_batch(10));
}

TEST_CASE("the plan is said in a few lines with their units") {
  Plan plan = plan_of(settings_of(4, 3));
  plan.memory.activations = 19'000;
  plan.memory.available = 2'000'000'000;
  plan.memory.process = 50'000'000;
  CHECK(plan.text() ==
        "plan\n"
        "  step        4 examples in 2 micro-batches of at most 3, about 22 tokens\n"
        "  epoch       10 examples, 3 steps\n"
        "  run         4 steps = 1.333 epochs, about 14 examples, 77 tokens\n"
        "  rate        up to 0.0001 after 0 steps of warm-up\n"
        "  parameters  15 in f32\n"
        "  memory      19.3 kB predicted of 2 GB available\n"
        "              parameters 60 B, gradients 60 B, optimizer 120 B, activations 19 kB, sums over micro-batches 60 "
        "B\n"
        "  process     at most 50 MB on the host, 5 MB of it examples\n");
  plan.memory.accumulation = 0;  // of one micro-batch
  CHECK(plan.text().find("sums over") == std::string::npos);
}

TEST_CASE("a plan without an example is refused") {
  CHECK_THROWS_WITH_AS(plan_of(settings_of(4, 4), 0), "training data: expected at least one example, got none", Error);
}
