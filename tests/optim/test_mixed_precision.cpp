// Masters in f32 beside values in half types, and the loss scale of f16.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "optim/optimizer.h"
#include "support/worst.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

constexpr Dim kCount = 40;

struct Weights : nn::Module {
  Weights()
      : w({this, "w"}, nn::init::truncated_normal({kCount}, 0.5)),
        b({this, "bias"}, nn::init::truncated_normal({kCount}, 0.5)) {}
  nn::Parameter w, b;
};

/// A model of one type with its optimizer.
struct Trained {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  Weights model;
  nn::ParameterSet parameters;
  optim::Optimizer optimizer;

  explicit Trained(DType dtype, const optim::Options& options = {.method = optim::Method::adamw, .clip_norm = 0.5})
      : parameters(model, *backend, {.dtype = dtype}), optimizer(parameters, options) {}

  /// Gradients as backward would leave them: scaled, then rounded to the model's type.
  double step(int number, double scale = 1) {
    std::vector<float> g(static_cast<std::size_t>(parameters.gradients().elements()));
    for (std::size_t i = 0; i < g.size(); ++i)  // numbers of 8 digits, which every type holds
      g[i] = static_cast<float>(BFloat16(std::sin(static_cast<float>(number * 100) + static_cast<float>(i)) * 0.01f)) *
             static_cast<float>(scale);
    ops::copy_into(ops::from_host(g, parameters.gradients().shape(), *backend), parameters.gradients());
    return optimizer.step(0.01);
  }
  double overflow() {
    ops::fill(parameters.gradients(), std::numeric_limits<double>::infinity());
    return optimizer.step(0.01);
  }
  std::vector<float> masters() const { return ops::to_host<float>(parameters.masters()); }
  std::vector<float> moments() const {
    auto all = ops::to_host<float>(optimizer.first_moments());
    const auto second = ops::to_host<float>(optimizer.second_moments());
    all.insert(all.end(), second.begin(), second.end());
    return all;
  }
  bool values_are_rounded_masters() const {
    return ops::to_host<float>(parameters.values()) ==
           ops::to_host<float>(ops::cast(parameters.masters(), parameters.values().dtype()));
  }
};

}  // namespace

TEST_CASE("masters exist only where the model computes in a half type and begin as an f32 model does") {
  Trained f32(DType::f32), f64(DType::f64), bf16(DType::bf16), f16(DType::f16);
  CHECK(f32.parameters.masters().same_memory(f32.parameters.values()));
  CHECK(f64.parameters.masters().same_memory(f64.parameters.values()));
  for (const Trained* half : {&bf16, &f16}) {
    CHECK(half->parameters.masters().dtype() == DType::f32);
    CHECK(half->optimizer.first_moments().dtype() == DType::f32);
    CHECK(half->masters() == f32.masters());
    CHECK(half->values_are_rounded_masters());
  }
}

TEST_CASE("from the same gradients masters move bit for bit as an f32 model does and values are masters rounded") {
  for (const optim::Method method : {optim::Method::sgd, optim::Method::adamw, optim::Method::adamw_google,
                                     optim::Method::lamb, optim::Method::lamb_decayed})
    for (const double clip : {0.0, 0.02}) {
      const optim::Options options{.method = method, .clip_norm = clip};
      Trained f32(DType::f32, options), bf16(DType::bf16, options), f16(DType::f16, options);
      const double scale = f16.optimizer.loss_scale().read().scale;
      CHECK(scale == 65536);
      for (int i = 0; i < 5; ++i) {
        const double norm = f32.step(i);
        CHECK(bf16.step(i) == doctest::Approx(norm).epsilon(1e-12));
        CHECK(f16.step(i, scale) == doctest::Approx(norm).epsilon(1e-12));
      }
      for (const Trained* half : {&bf16, &f16}) {
        INFO(name_of(half->parameters.values().dtype())
             << ", method " << static_cast<int>(method) << ", clip " << clip);
        CHECK(half->masters() == f32.masters());
        CHECK(half->moments() == f32.moments());
        CHECK(half->values_are_rounded_masters());
      }
    }
}

TEST_CASE("steps smaller than the digits of a half type add up") {
  Trained bf16(DType::bf16, {.method = optim::Method::adamw, .weight_decay = 0});
  ops::fill(bf16.parameters.masters(), 1);
  bf16.parameters.round_masters();
  for (int i = 0; i < 100; ++i) {  // bf16 has nothing between 1 and 0.996
    ops::fill(bf16.parameters.gradients(), 1);
    bf16.optimizer.step(1e-4);
  }
  CHECK(ops::to_host<float>(bf16.model.w.value())[0] == doctest::Approx(0.99).epsilon(0.003));
  CHECK(bf16.masters()[0] == doctest::Approx(0.99).epsilon(1e-4));
}

TEST_CASE("gradients that f16 cannot hold are kept by the loss scale") {
  const auto train = [](DType dtype, bool scaled) {
    Trained t(dtype, {.method = optim::Method::adamw, .epsilon = 1e-14, .weight_decay = 0, .clip_norm = 0});
    const Tensor target = ops::full({kCount}, 0.25, dtype, *t.backend);
    for (int i = 0; i < 10; ++i) {
      t.parameters.zero_gradients();
      const Variable loss = mse(t.model.w, target, 1e9);  // slopes of some 1e-9; the smallest number of f16 is 6e-8
      backward(loss, scaled ? t.optimizer.loss_scale().gradient_of_loss() : Tensor{});
      t.optimizer.step(0.01);
    }
    auto masters = t.masters();
    masters.resize(kCount);
    return masters;
  };
  const auto begin = Trained(DType::f32).masters(), f32 = train(DType::f32, false), scaled = train(DType::f16, true),
             unscaled = train(DType::f16, false);
  double moved = 0, apart = 0;
  for (std::size_t i = 0; i < f32.size(); ++i) {
    CHECK(unscaled[i] == begin[i]);
    moved = support::worst_of(moved, std::abs(f32[i] - begin[i]));
    apart = support::worst_of(apart, std::abs(f32[i] - scaled[i]));
  }
  CHECK(moved > 0.05);
  CHECK(apart < 0.002);
}

TEST_CASE(
    "a step that overflows changes nothing but the scale and the counts and does not count for the bias correction") {
  Trained f16(DType::f16), never(DType::f16);
  f16.step(1, 65536);
  never.step(1, 65536);
  const auto masters = f16.masters(), moments = f16.moments();
  CHECK(!std::isfinite(f16.overflow()));
  CHECK(f16.masters() == masters);
  CHECK(f16.moments() == moments);
  CHECK(f16.values_are_rounded_masters());
  const optim::LossScale::State state = f16.optimizer.loss_scale().read();
  CHECK(state.scale == 32768);
  CHECK(state.skipped_steps == 1);
  CHECK(state.good_steps == 0);
  CHECK(f16.optimizer.steps_done() == 2);
  CHECK(f16.step(2, 32768) == doctest::Approx(never.step(2, 65536)).epsilon(1e-12));
  CHECK(f16.masters() == never.masters());
}

TEST_CASE("the scale doubles after 2000 good steps in a row and a skip begins the count again") {
  Trained f16(DType::f16);
  f16.overflow();
  for (int i = 0; i < 1999; ++i) f16.step(1, 32768);
  CHECK(f16.optimizer.loss_scale().read().scale == 32768);
  CHECK(f16.optimizer.loss_scale().read().good_steps == 1999);
  f16.overflow();
  for (int i = 0; i < 1999; ++i) f16.step(1, 16384);
  CHECK(f16.optimizer.loss_scale().read().scale == 16384);
  f16.step(1, 16384);
  const optim::LossScale::State state = f16.optimizer.loss_scale().read();
  CHECK(state.scale == 32768);
  CHECK(state.good_steps == 0);
  CHECK(state.skipped_steps == 2);
}

TEST_CASE("the scale never grows beyond 2^32") {
  Trained f16(DType::f16);
  f16.optimizer.resume(10, {.scale = 0x1p32, .good_steps = 1999, .skipped_steps = 3});
  f16.step(1);
  const optim::LossScale::State state = f16.optimizer.loss_scale().read();
  CHECK(state.scale == 0x1p32);
  CHECK(state.good_steps == 0);
}

TEST_CASE("a scale that has fallen below 2^-10 ends the run and names the parameter") {
  Trained f16(DType::f16);
  for (int i = 0; i < 26; ++i) f16.overflow();  // 2^16 / 2^26
  CHECK(f16.optimizer.loss_scale().read().scale == 0x1p-10);
  try {
    f16.overflow();
    FAIL("expected an error");
  } catch (const Error& e) {
    CHECK(e.failure() == Failure::numerics);
    CHECK(std::string(e.what()).find("loss scale of 2^-10, first not finite in w") != std::string::npos);
  }
}

TEST_CASE("after the step that has ended training no later one moves anything, though its gradient is finite") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Trained t(dtype);
    t.step(1);
    const auto masters = t.masters(), moments = t.moments();
    for (const double gradient : {std::numeric_limits<double>::infinity(), 1.0}) {
      ops::fill(t.parameters.gradients(), gradient);
      t.optimizer.update(0.01, t.parameters.gradients());  // which the host has not read yet
      CHECK(t.masters() == masters);
      CHECK(t.moments() == moments);
      CHECK(t.optimizer.loss_scale().read().skipped_steps == 1);
      CHECK(t.optimizer.loss_scale().has_ended(t.optimizer.loss_scale().read()));
    }
  }
}

TEST_CASE("bf16 needs no loss scale: a gradient that is not finite ends the run") {
  Trained bf16(DType::bf16);
  CHECK_FALSE(bf16.optimizer.loss_scale().dynamic());
  CHECK_THROWS_AS(bf16.overflow(), Error);
}

TEST_CASE("types without a loss scale get none however many steps are good") {
  Trained bf16(DType::bf16);
  for (int i = 0; i < 2001; ++i) bf16.step(1);
  CHECK(bf16.optimizer.loss_scale().read().scale == 1);
}

TEST_CASE("after a resume with another scale the norm is that of gradients without it") {
  Trained f32(DType::f32), f16(DType::f16);
  f16.optimizer.resume(5, {.scale = 1024});
  CHECK(f16.step(1, 1024) == doctest::Approx(f32.step(1)).epsilon(1e-12));
}

TEST_CASE("at a step that moves the scale the norm is that under the scale from which it started") {
  Trained f32(DType::f32), f16(DType::f16);
  f16.optimizer.resume(5, {.scale = 1024, .good_steps = 1999});
  CHECK(f16.step(1, 1024) == doctest::Approx(f32.step(1)).epsilon(1e-12));
  CHECK(f16.optimizer.loss_scale().read().scale == 2048);
}

TEST_CASE("a run of f16 that goes on in another type has no scale there, and still counts the steps it skipped") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Trained other(dtype), begun(dtype);
    other.optimizer.resume(5, {.scale = 65536, .good_steps = 7, .skipped_steps = 2});
    begun.optimizer.resume(3, {});  // as many as were not skipped
    CHECK(other.optimizer.loss_scale().read().scale == 1);
    CHECK(other.optimizer.loss_scale().read().skipped_steps == 2);
    CHECK(other.step(1) == begun.step(1));
    CHECK(other.masters() == begun.masters());
  }
}

TEST_CASE("gradients summed in f32 are taken beside values of half types") {
  Trained f32(DType::f32), bf16(DType::bf16);
  f32.step(1);
  bf16.optimizer.step(0.01, f32.parameters.gradients());
  CHECK(bf16.masters() == f32.masters());
}
