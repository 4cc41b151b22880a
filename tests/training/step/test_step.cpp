#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <set>

#include "distributed/replica_group.h"
#include "nn/layers.h"
#include "tensor/backends.h"
#include "training/step/step.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

/// y = W x on fixed points, as a stand-in for a model: example i is a point, its target one number.
class Regression : public Objective {
 public:
  explicit Regression(Backend& backend)
      : backend_(backend), linear_({&root_, "linear"}, {.in_features = 8, .out_features = 1}) {}

  nn::Module& model() override { return root_; }
  std::int64_t examples(std::int64_t) override { return 64; }
  std::int64_t begin_step(const StepExamples& step, const distributed::Share&) override {
    step_ = step;
    return static_cast<std::int64_t>(step.numbers.size());
  }
  std::vector<LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t) override {
    std::vector<float> x, target;
    for (std::int64_t i = first; i < first + count; ++i) {
      const auto n = static_cast<float>(step_.numbers[static_cast<std::size_t>(i)]);
      for (int j = 0; j < 8; ++j) x.push_back(std::sin(n * 0.7f + static_cast<float>(j)));
      target.push_back(step_.numbers[static_cast<std::size_t>(i)] == poisoned ? std::numeric_limits<float>::infinity()
                                                                              : n / 64);
    }
    const DType type = linear_.weight.value().dtype();
    const Variable y = linear_(Variable(ops::cast(ops::from_host(x, {count, 8}, backend_), type)));
    const Tensor wanted = ops::cast(ops::from_host(target, {count, 1}, backend_), type);
    const auto all = static_cast<double>(step_.numbers.size());
    return {{"squared_loss", mse(y, wanted, all)}, {"other_loss", mse(y, wanted, 2 * all)}};
  }
  Metrics evaluate() override { return {}; }
  std::optional<double> score(const Metrics&) const override { return std::nullopt; }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t) const override {
    return std::make_unique<Regression>(self.backend());
  }
  std::size_t data_bytes() const override { return 0; }
  std::int64_t tokens(std::int64_t, std::int64_t) const override { return 1; }

  std::int64_t poisoned = -1;  // an example whose target is infinite

 private:
  Backend& backend_;
  nn::Module root_;
  nn::Linear linear_;
  StepExamples step_;
};

/// Keeps the keys of dropout that it is given.
struct Keyed : Regression {
  using Regression::Regression;
  std::vector<std::uint64_t> keys;
  std::vector<LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override {
    keys.push_back(key);
    return Regression::loss(first, count, key);
  }
};

struct Run {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  Regression objective{*backend};
  nn::ParameterSet parameters;
  optim::Optimizer optimizer{parameters, {}};

  explicit Run(DType dtype = DType::f32) : parameters(objective.model(), *backend, {.dtype = dtype}) {}

  StepResult step(const std::vector<std::int64_t>& examples, std::int64_t micro_batch_size) {
    const distributed::Replica self(*backend);
    Stepper stepper({objective, parameters, optimizer, self}, {.seed = 1, .micro_batch_size = micro_batch_size});
    return stepper.finish(stepper.start({.epoch = 0, .numbers = examples}, 1, 0.1));
  }
};

}  // namespace

TEST_CASE("a step of several micro-batches equals a step of one, up to rounding") {
  const std::vector<std::int64_t> examples{3, 1, 4, 15, 9, 2, 6};
  Run whole, parts;
  const StepResult a = whole.step(examples, 7), b = parts.step(examples, 2);
  CHECK(a.losses.at(0).name == "loss");
  CHECK(a.losses.at(1).name == "squared_loss");
  CHECK(a.losses.at(0).value == doctest::Approx(a.losses.at(1).value + a.losses.at(2).value).epsilon(1e-12));
  for (std::size_t i = 0; i < 3; ++i) CHECK(a.losses[i].value == doctest::Approx(b.losses.at(i).value).epsilon(1e-6));
  CHECK(a.grad_norm == doctest::Approx(b.grad_norm).epsilon(1e-6));
  const auto x = ops::to_host<float>(whole.parameters.values()), y = ops::to_host<float>(parts.parameters.values());
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == doctest::Approx(y[i]).epsilon(1e-5));
}

namespace {

/// Whose examples with an even number have the loss a + b, and the others a.
class Partly : public Objective {
 public:
  nn::Module& model() override { return root_; }
  std::int64_t examples(std::int64_t) override { return 2; }
  std::int64_t begin_step(const StepExamples& step, const distributed::Share&) override {
    step_ = step;
    return 0;
  }
  std::vector<LossPart> loss(std::int64_t first, std::int64_t, std::uint64_t) override {
    const bool even = step_.numbers[static_cast<std::size_t>(first)] % 2 == 0;
    return {{"loss", even ? add(a, b) : scale(a, 1)}};
  }
  Metrics evaluate() override { return {}; }
  std::optional<double> score(const Metrics&) const override { return std::nullopt; }
  std::unique_ptr<Objective> largest(const distributed::Replica&, std::int64_t) const override { return nullptr; }
  std::size_t data_bytes() const override { return 0; }
  std::int64_t tokens(std::int64_t, std::int64_t) const override { return 1; }

 private:
  nn::Module root_;
  StepExamples step_;

 public:
  nn::Parameter a{{&root_, "a"}, nn::init::zeros({1})}, b{{&root_, "b"}, nn::init::zeros({1})};
};

}  // namespace

TEST_CASE("a micro-batch that does not reach a parameter adds nothing to its gradient") {
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  Partly objective;
  nn::ParameterSet parameters(objective.model(), *backend);
  optim::Optimizer optimizer(parameters, {.method = optim::Method::sgd, .weight_decay = 0, .clip_norm = 0});
  Stepper stepper({objective, parameters, optimizer, self}, {.micro_batch_size = 1});
  const StepResult result = stepper.finish(stepper.start({.epoch = 0, .numbers = {0, 1}}, 1, 1));
  CHECK(ops::item(objective.a.value()) == -2);
  CHECK(ops::item(objective.b.value()) == -1);
  REQUIRE(result.losses.size() == 1);  // the only part of a loss is the loss
  CHECK(result.losses[0].name == "loss");
}

TEST_CASE("the dropout of a step follows from the seed and its number, and is that of all its micro-batches") {
  const auto keys_of = [](std::uint64_t seed, const std::vector<std::int64_t>& steps) {
    const auto backend = open_cpu({.threads = 1});
    const distributed::Replica self(*backend);
    Keyed objective(*backend);
    nn::ParameterSet parameters(objective.model(), *backend);
    optim::Optimizer optimizer(parameters, {});
    Stepper stepper({objective, parameters, optimizer, self}, {.seed = seed, .micro_batch_size = 1});
    std::vector<std::uint64_t> keys;
    for (const std::int64_t step : steps) {
      keys.push_back(stepper.start({.epoch = 0, .numbers = {3, 1}}, step, 0.1).key);
      CHECK(objective.keys == std::vector(2, keys.back()));
      objective.keys.clear();
    }
    return keys;
  };
  const auto one = keys_of(1, {1, 2}), two = keys_of(2, {1, 2});
  CHECK(keys_of(1, {1, 2}) == one);
  CHECK(keys_of(1, {2, 1}) == std::vector{one[1], one[0]});  // a run that is resumed begins with any step
  CHECK(std::set{one[0], one[1], two[0], two[1]}.size() == 4);
}

TEST_CASE("a bad step is computed again with its own dropout") {
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  Keyed objective(*backend);
  objective.poisoned = 1;
  nn::ParameterSet parameters(objective.model(), *backend);
  optim::Optimizer optimizer(parameters, {});
  Stepper stepper({objective, parameters, optimizer, self}, {.seed = 1, .micro_batch_size = 1});
  const StartedStep step = stepper.start({.epoch = 0, .numbers = {3, 1}}, 5, 0.1);
  CHECK_FALSE(step.gradients);  // which nobody asked to keep
  CHECK_THROWS_AS(stepper.finish(step), Error);
  CHECK(objective.keys == std::vector(4, step.key));
}

TEST_CASE("a loss has eight parts at most") {
  struct Parted : Partly {
    int parts = 8;
    std::vector<LossPart> loss(std::int64_t, std::int64_t, std::uint64_t) override {
      std::vector<LossPart> all;
      for (int i = 0; i < parts; ++i) all.push_back({"part" + std::to_string(i), scale(a, i)});
      return all;
    }
  };
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  Parted objective;
  nn::ParameterSet parameters(objective.model(), *backend);
  optim::Optimizer optimizer(parameters, {.method = optim::Method::sgd, .weight_decay = 0, .clip_norm = 0});
  Stepper stepper({objective, parameters, optimizer, self}, {.micro_batch_size = 1});
  const StepResult result = stepper.finish(stepper.start({.epoch = 0, .numbers = {0}}, 1, 1));
  REQUIRE(result.losses.size() == 9);  // the loss and its parts
  CHECK(result.losses[8].name == "part7");
  CHECK(result.grad_norm == 28);  // 0 + 1 + … + 7
  objective.parts = 1;
  const StepResult single = stepper.finish(stepper.start({.epoch = 0, .numbers = {0}}, 2, 1));
  REQUIRE(single.losses.size() == 2);  // the only part has a name of its own
  CHECK(single.losses[1].name == "part0");
  CHECK(single.losses[1].value == single.losses[0].value);
  objective.parts = 9;
  CHECK_THROWS_AS(stepper.start({.epoch = 0, .numbers = {0}}, 3, 1), Error);
}

TEST_CASE("a total beside the parts of a loss, which would be added to them, is refused") {
  struct Total : Partly {
    std::vector<LossPart> loss(std::int64_t, std::int64_t, std::uint64_t) override {
      return {{"loss", scale(a, 2)}, {"a_loss", a}, {"b_loss", a}};
    }
  };
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  Total objective;
  nn::ParameterSet parameters(objective.model(), *backend);
  optim::Optimizer optimizer(parameters, {});
  Stepper stepper({objective, parameters, optimizer, self}, {.micro_batch_size = 1});
  CHECK_THROWS_AS(stepper.start({.epoch = 0, .numbers = {0}}, 1, 1), Error);
}

TEST_CASE("a loss that is too large only as the sum of its micro-batches ends the training and is named") {
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  Partly objective;
  nn::ParameterSet parameters(objective.model(), *backend, {.dtype = DType::f64});
  ops::fill(parameters.masters(), 1e308);
  parameters.round_masters();
  optim::Optimizer optimizer(parameters, {.method = optim::Method::sgd, .weight_decay = 0, .clip_norm = 0});
  Stepper stepper({objective, parameters, optimizer, self}, {.micro_batch_size = 1});
  const StartedStep step = stepper.start({.epoch = 0, .numbers = {1, 3}}, 1, 1);
  CHECK_THROWS_WITH_AS(stepper.finish(step), doctest::Contains("step 1: loss: expected a finite number"), Error);
}

TEST_CASE("replicas make the step of one, bit for bit, also when some have no micro-batch") {
  for (const optim::Method method : {optim::Method::adamw, optim::Method::lamb})
    for (std::int64_t examples = 1; examples <= 7; ++examples) {
      std::vector<std::int64_t> numbers;
      for (std::int64_t i = 0; i < examples; ++i) numbers.push_back(5 * i % 31);
      std::vector<float> expected;
      std::vector<double> expected_losses;
      for (int replicas = 1; replicas <= 4; ++replicas) {
        CAPTURE(examples);
        CAPTURE(replicas);
        std::vector<std::unique_ptr<Backend>> backends;
        for (int i = 0; i < replicas; ++i) backends.push_back(open_cpu({.threads = 1}));
        distributed::ReplicaGroup group(std::move(backends));
        std::atomic<int> different{0};
        group.run([&](const distributed::Replica& self) {
          Regression objective(self.backend());
          nn::ParameterSet parameters(objective.model(), self.backend());
          optim::Optimizer optimizer(parameters, {.method = method});
          Stepper stepper({objective, parameters, optimizer, self}, {.seed = 1, .micro_batch_size = 1});
          StepResult result;
          for (int step = 1; step <= 3; ++step)
            result = stepper.finish(stepper.start({.epoch = 0, .numbers = numbers}, step, 0.1));
          const auto values = ops::to_host<float>(parameters.values());
          if (self.size() == 1) {
            expected = values;
            for (const Metric& loss : result.losses) expected_losses.push_back(loss.value);
          }
          different += values != expected || result.losses[0].value != expected_losses[0];
          for (std::size_t i = 0; self.first() && i < expected_losses.size(); ++i)
            different += result.losses.at(i).value != expected_losses[i];
        });
        CHECK(different == 0);
      }
    }
}

TEST_CASE("a loss that is not finite on one replica stops all before anything changes, and is the one reported") {
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < 3; ++i) backends.push_back(open_cpu({.threads = 1}));
  distributed::ReplicaGroup group(std::move(backends));
  std::atomic<int> changed{0};
  std::string message;
  try {
    group.run([&](const distributed::Replica& self) {
      Regression objective(self.backend());
      objective.poisoned = 4;
      nn::ParameterSet parameters(objective.model(), self.backend());
      optim::Optimizer optimizer(parameters, {});
      const auto before = ops::to_host<float>(parameters.values());
      Stepper stepper({objective, parameters, optimizer, self}, {.seed = 1, .micro_batch_size = 1});
      try {
        stepper.finish(stepper.start({.epoch = 0, .numbers = {3, 1, 4}}, 1, 0.1));
      } catch (...) {
        changed += ops::to_host<float>(parameters.values()) != before;
        throw;
      }
    });
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::numerics);
    message = error.what();
  }
  CHECK(message.find("step 1: op mse: forward") == 0);
  CHECK(changed == 0);
}

TEST_CASE("a loss that is not finite changes nothing and names step, op and tensor") {
  Run run;
  run.objective.poisoned = 4;
  const auto before = ops::to_host<float>(run.parameters.values());
  std::string message;
  try {
    run.step({3, 1, 4, 15}, 2);
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::numerics);
    message = error.what();
  }
  CHECK(message.find("step 1: op mse: forward") == 0);
  CHECK(ops::to_host<float>(run.parameters.values()) == before);
}

TEST_CASE("neither a bad step nor those started after it change a parameter, and the bad one is named") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CAPTURE(name_of(dtype));
    Run good(dtype), late(dtype);
    late.objective.poisoned = 4;
    good.step({3, 1}, 2);
    const distributed::Replica self(*late.backend);
    Stepper stepper({late.objective, late.parameters, late.optimizer, self}, {.seed = 1, .micro_batch_size = 2});
    std::vector<StartedStep> started;
    for (const std::vector<std::int64_t>& examples : std::vector<std::vector<std::int64_t>>{{3, 1}, {4, 2}, {5, 6}})
      started.push_back(
          stepper.start({.epoch = 0, .numbers = examples}, static_cast<std::int64_t>(started.size()) + 1, 0.1));
    CHECK(std::isfinite(stepper.finish(started[0]).losses[0].value));
    std::string message;
    try {
      stepper.finish(started[1]);
    } catch (const Error& error) {
      CHECK(error.failure() == Failure::numerics);
      message = error.what();
    }
    CHECK(message.find("step 2: op mse: forward") == 0);
    CHECK(ops::to_host<float>(late.parameters.masters()) == ops::to_host<float>(good.parameters.masters()));
  }
}

TEST_CASE("a loss that is not finite ends the training although its gradient is finite") {
  Run run;
  const auto before = ops::to_host<float>(run.parameters.values());
  const Tensor gradients = ops::full(run.parameters.values().shape(), 0.5, DType::f32, *run.backend);
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor losses = ops::from_host(std::vector<double>{1, infinity, 0}, {3}, *run.backend);
  const auto read = [&](const Tensor& numbers) {
    return run.optimizer.read(std::span<const double, 4>(ops::to_host<double>(numbers)));
  };
  CHECK(read(run.optimizer.update(0.1, gradients, losses)).ended);
  CHECK(read(run.optimizer.update(0.1, gradients)).ended);
  CHECK(ops::to_host<float>(run.parameters.values()) == before);
}

TEST_CASE("a loss scale without a place to go ends the training: good steps started after it change nothing") {
  Run run(DType::f16);
  run.optimizer.resume(7, {.scale = 0x1p-10, .good_steps = 3, .skipped_steps = 5});
  run.objective.poisoned = 4;
  const auto before = ops::to_host<float>(run.parameters.masters());
  const distributed::Replica self(*run.backend);
  Stepper stepper({run.objective, run.parameters, run.optimizer, self}, {.seed = 1, .micro_batch_size = 2});
  const StartedStep bad = stepper.start({.epoch = 0, .numbers = {4, 2}}, 8, 0.1),
                    good = stepper.start({.epoch = 0, .numbers = {3, 1}}, 9, 0.1);
  CHECK(ops::to_host<float>(run.parameters.masters()) == before);
  CHECK(run.optimizer.loss_scale().read().scale == 0x1p-11);
  CHECK(run.optimizer.loss_scale().read().skipped_steps == 6);
  CHECK_THROWS_WITH_AS(stepper.finish(bad), doctest::Contains("step 8: op mse: forward"), Error);
}
