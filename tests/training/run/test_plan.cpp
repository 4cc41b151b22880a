#include "training/run/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "cuda_emulated/emulated_gpu.h"
#include "distributed/replica_group.h"
#include "nn/layers.h"
#include "support/epoch_numbers.h"
#include "support/gibibyte.h"
#include "support/refusal.h"
#include "tensor/backends.h"
#include "tensor/dry_run.h"
#include "training/step/step.h"

using namespace bertrand;
using namespace bertrand::training;
using support::OfGibibyte;

namespace {

/// 10 examples an epoch, example i of the first of i + 1 tokens unless told otherwise; every second epoch has two more.
/// A token is a thousand points of four numbers. Evaluation takes twelve numbers for a point of `evaluated` tokens.
struct Counted : Objective {
  Backend* backend = nullptr;
  std::int64_t count = 10;
  nn::Module root;
  nn::Linear linear{{&root, "linear"}, {.in_features = 4, .out_features = 3}};
  StepExamples step;
  std::function<std::int64_t(std::int64_t example)> length = [](std::int64_t example) { return example + 1; };
  std::int64_t more = 2;  // examples in every second epoch
  std::int64_t evaluated = 0, last_epoch = 0;
  std::size_t of_step_example = 0, outputs = 0;  // bytes

  nn::Module& model() override { return root; }
  std::int64_t examples(std::int64_t epoch) override {
    last_epoch = std::max(last_epoch, epoch);
    return count + more * (epoch % 2);
  }
  std::int64_t begin_step(const StepExamples& examples, const distributed::Share&) override {
    step = examples;
    return 0;
  }
  std::vector<LossPart> loss(std::int64_t first, std::int64_t number, std::uint64_t) override {
    Dim points = 0;
    for (std::int64_t i = first; i < first + number; ++i)
      points += 1000 * length(step.numbers[static_cast<std::size_t>(i)]);
    const DType type = linear.weight.value().dtype();
    const Variable y = linear(Variable(ops::full({points, 4}, 1, type, *backend)));
    return {{"loss", mse(y, ops::full({points, 3}, 0, type, *backend), 1)}};
  }
  Metrics evaluate() override {
    if (evaluated > 0) ops::full({1000 * evaluated, 12}, 1, DType::f32, *backend);
    return {};
  }
  std::optional<double> score(const Metrics&) const override { return std::nullopt; }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t number) const override {
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < count + more; ++i) lengths.push_back(length(i));
    std::ranges::sort(lengths, std::greater());
    auto largest = std::make_unique<Counted>();
    largest->backend = &self.backend();
    largest->count = std::min(number, count + more);
    largest->more = 0;
    largest->length = [lengths](std::int64_t example) { return lengths[static_cast<std::size_t>(example)]; };
    largest->evaluated = evaluated;
    return largest;
  }
  std::size_t data_bytes() const override { return 5'000'000; }
  std::size_t bytes_of_steps(std::int64_t examples) const override {
    return of_step_example * static_cast<std::size_t>(examples);
  }
  std::size_t bytes_of_outputs() const override { return outputs; }
  std::int64_t tokens(std::int64_t epoch, std::int64_t example) const override { return length(example) + 9 * epoch; }
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

/// One of several replicas, each in a process of its own on one host.
struct OneOfMany : distributed::SoloCollective {
  OneOfMany(Backend& backend, int replicas) : SoloCollective(backend), count(replicas) {}
  int size() const override { return count; }
  int processes_on_this_host() const override { return count; }
  int count;
};
distributed::Replica one_of(int replicas, Backend& backend) {
  return {backend, std::make_unique<OneOfMany>(backend, replicas)};
}

Plan plan_of(const Settings& settings, std::int64_t count = 10) {
  Counted objective;
  objective.count = count;
  const auto backend = open_cpu({.threads = 1});
  return make_plan(settings, objective, distributed::Replica(*backend));
}

}  // namespace

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

TEST_CASE("no later epoch takes more memory than the plan says") {
  const auto cpu = open_cpu({.threads = 1});
  DryRun device(*cpu);  // if kernels take no scratch memory
  const distributed::Replica self(device);
  Counted objective;
  objective.backend = &device;
  objective.count = 4;
  objective.more = 0;
  objective.length = [](std::int64_t example) { return example < 2 ? 10 : 1; };
  Settings settings = settings_of(2, 2);
  settings.shuffle = true;
  const auto long_ones_meet = [&](std::int64_t epoch) {
    const auto order = support::epoch_numbers(settings, epoch, 4);
    return (order[0] < 2) == (order[1] < 2);
  };
  while (long_ones_meet(0) || long_ones_meet(1) || long_ones_meet(2) || !long_ones_meet(3)) ++settings.seed;
  const Plan plan = make_plan(settings, objective, self);

  nn::ParameterSet parameters(objective.model(), device, {.initialize = false});
  optim::Optimizer optimizer(parameters, settings.optimizer);
  Stepper stepper({objective, parameters, optimizer, self}, {.micro_batch_size = 2});
  std::size_t before = 0;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    before = device.memory().peak;
    const auto order = support::epoch_numbers(settings, epoch, 4);
    for (const std::ptrdiff_t first : {0, 2})
      stepper.start({.epoch = epoch, .numbers = {order.begin() + first, order.begin() + first + 2}},
                    2 * epoch + first / 2 + 1, 0);
  }
  CHECK(device.memory().peak > before);  // which epochs before the fourth do not show
  CHECK(device.memory().peak <= plan.memory.total());
  CHECK(static_cast<double>(plan.memory.total()) ==
        doctest::Approx(static_cast<double>(device.memory().peak)).epsilon(0.01));
}

TEST_CASE("an evaluation that takes more than a step is planned") {
  const auto backend = open_cpu({.threads = 1});
  Counted objective;
  objective.evaluated = 1000;
  const Plan plan = make_plan(settings_of(4, 3), objective, distributed::Replica(*backend));
  CHECK(plan.memory.activations >= std::size_t{1000} * 1000 * 48);
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
  Settings two_replicas = settings;
  two_replicas.replicas = 2;
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
                       doctest::Contains("; hint: not even a --micro-batch-size of 1 would fit"), Error);
  CHECK(fitting_hint(two_replicas, 4).find("--recompute-activations") != std::string::npos);
  two_replicas.recompute_activations = 2;
  CHECK(fitting_hint(two_replicas, 4).find("--recompute-activations") == std::string::npos);
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
  struct Processes : OneOfMany {
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
  CHECK(addends(2) == 2);  // of 8 one, but of a step of 7 the second process has 4, (5 + 6): (4 + 5) is not its sum
  CHECK(addends(3) == 4);  // of 7: 3 and 4, 5 and 6
  CHECK(addends(8) == 7);
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
