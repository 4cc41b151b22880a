// The optimizers against published figures: google-research/bert's optimization_test.py problem in double precision,
// and NVIDIA's schedules.
#include <doctest/doctest.h>

#include <cmath>

#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tensor/backends.h"
#include "tensor/profiler.h"

using namespace bertrand;

namespace {

struct Weights : nn::Module {
  Weights() : w({this, "w"}, nn::init::zeros({3})) {}
  nn::Parameter w;
};

/// `steps` steps on mean((x − w)²) from w = [.1, −.2, −.1] with x = [.4, .2, −.5].
std::vector<double> train(const optim::Options& options, double rate, int steps) {
  const auto backend = open_cpu({.threads = 1});
  Weights model;
  nn::ParameterSet parameters(model, *backend, {.dtype = DType::f64});
  ops::copy_into(ops::from_host(std::vector<double>{.1, -.2, -.1}, {3}, *backend), model.w.value());
  const Tensor x = ops::from_host(std::vector<double>{.4, .2, -.5}, {3}, *backend);
  optim::Optimizer optimizer(parameters, options);
  for (int i = 0; i < steps; ++i) {
    parameters.zero_gradients();
    backward(mse(model.w, x, 3));
    optimizer.step(rate);
  }
  return ops::to_host<double>(model.w.value());
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) <= 1e-8);
}

}  // namespace

TEST_CASE("Google's AdamW gives the published numbers") {
  const optim::Options plain{.method = optim::Method::adamw_google, .weight_decay = 0, .clip_norm = 0};
  check_close(train(plain, .2, 1), {0.73235555, 0.43238054, -0.73238054});
  check_close(train(plain, .2, 2), {0.64426232, 0.60690534, -0.90690534});
  check_close(train(plain, .2, 100), {0.40164604, 0.19782445, -0.49782445});
  const optim::Options decayed{.method = optim::Method::adamw_google, .weight_decay = .01, .clip_norm = 0};
  check_close(train(decayed, .001, 1), {0.10316078, -0.19683610, -0.10316090});
  check_close(train(decayed, .001, 100), {0.38920001, 0.14210272, -0.44191638});
}

TEST_CASE("LAMB gives the published numbers") {
  const optim::Options lamb{.method = optim::Method::lamb, .weight_decay = .01, .clip_norm = 0};
  check_close(train(lamb, .01, 1), {0.10141280, -0.19858296, -0.10141280});
  check_close(train(lamb, .01, 2), {0.10282561, -0.19716585, -0.10282566});
}

TEST_CASE("SGD moves each weight against its gradient and decays it and leaves no second moment") {
  // The gradient of mean((x − w)²) is 2 (w − x) / 3: w ← w − α (2 (w − x) / 3 + λ w).
  const optim::Options plain{.method = optim::Method::sgd, .weight_decay = 0, .clip_norm = 0};
  check_close(train(plain, .3, 1), {.1 + .2 * .3, -.2 + .2 * .4, -.1 - .2 * .4});
  const optim::Options decayed{.method = optim::Method::sgd, .weight_decay = .5, .clip_norm = 0};
  check_close(train(decayed, .3, 1), {.1 + .2 * .3 - .15 * .1, -.2 + .2 * .4 + .15 * .2, -.1 - .2 * .4 + .15 * .1});
  check_close(train(plain, .3, 100), {.4, .2, -.5});
}

TEST_CASE("a parameter that the loss did not reach is moved by no gradient of an earlier step") {
  struct Two : nn::Module {
    Two() : a({this, "a"}, nn::init::zeros({1})), b({this, "b"}, nn::init::zeros({1})) {}
    nn::Parameter a, b;
  };
  const auto backend = open_cpu({.threads = 1});
  Two model;
  nn::ParameterSet parameters(model, *backend, {.dtype = DType::f64});
  optim::Optimizer optimizer(parameters, {.method = optim::Method::sgd, .weight_decay = 0, .clip_norm = 0});
  parameters.zero_gradients();
  backward(add(model.a, model.b));
  optimizer.step(1);
  parameters.zero_gradients();
  backward(scale(model.a, 1));
  optimizer.step(1);
  CHECK(ops::item(model.a.value()) == -2);
  CHECK(ops::item(model.b.value()) == -1);
}

TEST_CASE("a profile says of an update that each weight's four numbers are read and three are written") {
  const auto backend = open_cpu({.threads = 1});
  Weights model;
  nn::ParameterSet parameters(model, *backend);
  optim::Optimizer optimizer(parameters, {});
  parameters.zero_gradients();
  Profiler profiler;
  backend->profiler = &profiler;
  optimizer.step(1);
  backend->profiler = nullptr;
  const std::string totals = profiler.totals();
  const std::size_t at = totals.find("{\"name\":\"update\",\"calls\":1,");
  REQUIRE(at != std::string::npos);
  const std::size_t bytes = 7 * parameters.trained(parameters.masters()).bytes();
  CHECK(totals.substr(at, totals.find('}', at) - at).ends_with(",\"bytes\":" + std::to_string(bytes)));
}

TEST_CASE("a set without gradients is not trained") {
  const auto backend = open_cpu({.threads = 1});
  Weights model;
  nn::ParameterSet parameters(model, *backend, {.gradients = false});
  optim::Optimizer optimizer(parameters, {});
  CHECK_THROWS_WITH_AS(
      optimizer.step(1),
      "parameters: expected gradients, got a set that was made without; hint: ParameterSet::Options::gradients", Error);
}

TEST_CASE("a graph that was recorded before an optimizer moved its weights is refused") {
  const auto backend = open_cpu({.threads = 1});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CAPTURE(name_of(dtype));
    Weights model;
    nn::ParameterSet parameters(model, *backend, {.dtype = dtype});
    optim::Optimizer optimizer(parameters, {});
    const Variable loss = sum(mul(model.w, model.w));
    ops::fill(parameters.gradients(), 1);
    optimizer.step(.1);
    CHECK_THROWS_AS(backward(loss), Error);
  }
}

TEST_CASE("clipping scales all gradients by the global norm and reports the norm before it") {
  const auto backend = open_cpu({.threads = 1});
  Weights model;
  nn::ParameterSet parameters(model, *backend, {.dtype = DType::f64});
  optim::Optimizer optimizer(parameters, {.clip_norm = 1});
  parameters.zero_gradients();
  backward(sum(mul(model.w, Variable(ops::from_host(std::vector<double>{3, 0, 4}, {3}, *backend)))));
  CHECK(optimizer.step(.1) == doctest::Approx(5));
  CHECK(ops::to_host<double>(optimizer.first_moments())[0] == doctest::Approx(.1 * 3 / 5));
}

TEST_CASE("a gradient that is not finite stops the step before a value changes and is named") {
  const auto backend = open_cpu({.threads = 1});
  Weights model;
  nn::ParameterSet parameters(model, *backend);
  optim::Optimizer optimizer(parameters, {});
  ops::fill(parameters.gradients(), std::nan(""));
  try {
    optimizer.step(1);
    FAIL("expected an error");
  } catch (const Error& e) {
    CHECK(e.failure() == Failure::numerics);
    CHECK(std::string(e.what()).find("first not finite in w") != std::string::npos);
  }
  for (const float v : ops::to_host<float>(model.w.value())) CHECK(v == 0);
}

TEST_CASE("schedules follow their sources jumps included") {
  const auto rate = [](optim::Schedule schedule, double base, std::int64_t warmup, std::int64_t total,
                       std::int64_t done) {
    return optim::learning_rate({schedule, base, warmup, total}, done);
  };
  const std::pair<std::int64_t, double> google[] = {{0, 0},     {1, 2e-6},  {9, 1.8e-5}, {10, 1e-5},
                                                    {11, 9e-6}, {19, 1e-6}, {20, 0}};
  for (const auto& [done, expected] : google)
    CHECK(std::abs(rate(optim::Schedule::google, 2e-5, 10, 20, done) - expected) <= 1e-17);
  const std::pair<std::int64_t, double> polynomial[] = {
      {0, 2.99865e-6}, {1999, .00599729}, {2000, .00507589}, {7036, 7.1519854e-5}};
  for (const auto& [done, expected] : polynomial)
    CHECK(optim::learning_rate({.schedule = optim::Schedule::polynomial,
                                .learning_rate = 6e-3,
                                .warmup_steps = 2000,
                                .total_steps = 7038,
                                .warmup_share = .2843},
                               done) == doctest::Approx(expected).scale(0).epsilon(2e-6));
  // A warm-up that is a whole number of steps; the step at which it ends is no part of it.
  CHECK(rate(optim::Schedule::polynomial, 2, 5, 10, 0) == doctest::Approx(.4));
  CHECK(rate(optim::Schedule::polynomial, 2, 5, 10, 3) == doctest::Approx(1.6));
  CHECK(rate(optim::Schedule::polynomial, 2, 5, 10, 4) == doctest::Approx(2 * std::sqrt(.5)));
  CHECK(rate(optim::Schedule::linear, 1, 10, 110, 5) == doctest::Approx(.5));
  CHECK(rate(optim::Schedule::linear, 1, 10, 110, 10) == doctest::Approx(1));
  CHECK(rate(optim::Schedule::linear, 1, 10, 110, 60) == doctest::Approx(.5));
  CHECK(rate(optim::Schedule::linear, 1, 10, 110, 110) == 0);
  // transformers 5.23, get_cosine_schedule_with_warmup(optimizer, 4, 20)
  const std::pair<std::int64_t, double> cosine[] = {
      {0, 0}, {3, .75}, {4, 1}, {5, .9903926402016152}, {12, .5}, {17, .08426519384872733}, {19, .009607359798384785},
      {20, 0}};
  for (const auto& [done, expected] : cosine)
    CHECK(std::abs(rate(optim::Schedule::cosine, 1, 4, 20, done) - expected) <= 1e-15);
  CHECK(rate(optim::Schedule::cosine, 1, 4, 20, 30) == 0);
  CHECK(rate(optim::Schedule::constant, 1, 4, 100, 2) == doctest::Approx(.5));
  CHECK(rate(optim::Schedule::constant, 1, 4, 100, 99) == 1);
}

TEST_CASE("no schedule goes below 0 or beyond its rate with a warm-up of any length") {
  using optim::Schedule;
  for (const Schedule schedule :
       {Schedule::google, Schedule::linear, Schedule::polynomial, Schedule::cosine, Schedule::constant})
    for (const std::int64_t warmup : {0, 1, 5, 9, 10, 11, 40})
      for (std::int64_t done = 0; done <= 12; ++done) {
        const double rate = optim::learning_rate({schedule, 2.0, warmup, 10}, done);
        INFO("schedule " << static_cast<int>(schedule) << ", warm-up " << warmup << " of 10 steps, done " << done
                         << ": " << rate);
        CHECK((rate >= 0 && rate <= 2.0));
        if (warmup == 40 && schedule != Schedule::polynomial) CHECK(rate == 2.0 * (static_cast<double>(done) / 40));
      }
  CHECK(optim::learning_rate({Schedule::linear, 1, 10, 10}, 9) == 0.9);
  CHECK(optim::learning_rate({Schedule::linear, 1, 0, 10}, 0) == 1);
  CHECK(optim::learning_rate({Schedule::linear, 1, 0, 10}, 9) == doctest::Approx(.1));
}
