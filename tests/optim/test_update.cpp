// The optimizers against the formulas of their papers in plain loops, on variables of awkward sizes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "optim/optimizer.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;
using optim::Method;

namespace {

struct Model : nn::Module {
  Model()
      : large(*this, {"large.weight"}, nn::init::truncated_normal({3, 11'111}, .5)),
        small(*this, {"small.weight"}, nn::init::truncated_normal({17}, .1)),
        bias(*this, {"small.bias"}, nn::init::zeros({5})),
        norm(*this, {"LayerNorm.weight"}, nn::init::ones({33})),
        one(*this, {"one.weight"}, nn::init::truncated_normal({1}, .1)) {}
  nn::Parameter large, small, bias, norm, one;
};

std::vector<double> noise(std::size_t count, std::uint64_t key) {
  Random random(key);
  std::vector<double> values(count);
  for (double& v : values) v = 2 * random.uniform() - 1;
  return values;
}

/// One variable, moved by the formulas.
struct Plain {
  std::vector<double> w, m, v;
  bool decays = true;

  explicit Plain(std::vector<double> values) : w(std::move(values)), m(w.size()), v(w.size()) {}

  void step(const std::vector<double>& gradient, const optim::Options& o, double clip, double rate, int t) {
    const bool corrected = o.method != Method::adamw_google;
    const double bias1 = corrected ? 1 - std::pow(o.beta1, t) : 1, bias2 = corrected ? 1 - std::pow(o.beta2, t) : 1;
    const double decay = decays ? o.weight_decay : 0;
    std::vector<double> u(w.size());
    double w_square = 0, u_square = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] * clip;
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      u[i] = o.method == Method::sgd ? g : m[i] / bias1 / (std::sqrt(v[i] / bias2) + o.epsilon);
      u[i] += decay * w[i];
      w_square += w[i] * w[i];
      u_square += u[i] * u[i];
    }
    // As in apex's multi_tensor_lamb.cu: use_nvlamb || decay != 0.
    const bool trusted = o.method == Method::lamb || (o.method == Method::lamb_decayed && decay != 0);
    const double ratio = trusted && w_square > 0 && u_square > 0 ? std::sqrt(w_square / u_square) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * ratio * u[i];
  }
};

/// Half the rate for one parameter; one is frozen.
double rate_of(const std::string& name) {
  return name == "large.weight" || name == "small.bias" ? 0.5 : name == "one.weight" ? 0 : 1;
}

/// The greatest difference after three steps, relative to the greatest step that a value took. `rates`: as rate_of().
double difference(const optim::Options& options, DType dtype, double gradient_size, bool rates) {
  const auto backend = open_cpu({.threads = 3});
  Model model;
  const auto rate = [&](const std::string& name) { return rates ? rate_of(name) : 1; };
  nn::ParameterSet parameters(model, *backend, {.dtype = dtype, .rate = rate});
  optim::Optimizer optimizer(parameters, options);
  std::vector<Plain> plain;
  for (const auto& segment : parameters.segments()) {
    plain.emplace_back(ops::to_host<double>(parameters.value(segment)));
    plain.back().decays = segment.name != "small.bias" && segment.name != "LayerNorm.weight";
  }
  const std::vector<Plain> before = plain;
  for (int t = 1; t <= 3; ++t) {
    double square = 0;
    std::vector<std::vector<double>> gradients;
    for (const auto& segment : parameters.segments()) {
      if (segment.rate == 0) continue;
      std::vector<double> g =
          noise(static_cast<std::size_t>(segment.count()), static_cast<std::uint64_t>(t * 100 + segment.begin));
      for (double& x : g) x *= gradient_size;
      if (segment.name == "small.weight" && t < 3) std::fill(g.begin(), g.end(), 0);  // epsilon alone below
      ops::copy_into(ops::from_host(g, segment.shape, *backend), parameters.gradient(segment));
      for (const double x : g) square += x * x;
      gradients.push_back(std::move(g));
    }
    const double clip = options.clip_norm > 0 ? std::min(1.0, options.clip_norm / std::sqrt(square)) : 1;
    for (std::size_t s = 0; s < gradients.size(); ++s)  // frozen ones come last
      plain[s].step(gradients[s], options, clip, .1 * parameters.segments()[s].rate, t);
    CHECK(optimizer.step(.1) == doctest::Approx(std::sqrt(square)).epsilon(dtype == DType::f64 ? 1e-12 : 1e-6));
  }
  double worst = 0, moved = 0;
  for (std::size_t s = 0; s < plain.size(); ++s) {
    const std::vector<double> got = ops::to_host<double>(parameters.value(parameters.segments()[s]));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double apart = std::abs(got[i] - plain[s].w[i]);
      if (std::isnan(apart)) return apart;
      worst = std::max(worst, apart);
      moved = std::max(moved, std::abs(before[s].w[i] - plain[s].w[i]));
    }
  }
  return worst / moved;
}

constexpr Method kMethods[] = {Method::sgd, Method::adamw, Method::adamw_google, Method::lamb, Method::lamb_decayed};

}  // namespace

TEST_CASE("every optimizer moves a variable of any size as its formulas say") {
  for (const Method method : kMethods)
    for (const double clip_norm : {0.0, 1.0, 1e4})      // off, clipping, and above every norm
      for (const double gradient_size : {1.0, 1e-3}) {  // epsilon is small beside the first, not beside the second
        const optim::Options options{
            .method = method, .beta1 = .8, .beta2 = .95, .epsilon = 1e-4, .weight_decay = .3, .clip_norm = clip_norm};
        INFO("method " << static_cast<int>(method) << ", clip " << clip_norm << ", gradients of " << gradient_size);
        for (const bool rates : {false, true}) {
          CAPTURE(rates);
          CHECK(difference(options, DType::f64, gradient_size, rates) <= 1e-13);
          CHECK(difference(options, DType::f32, gradient_size, rates) <= 1e-5);
        }
      }
}

TEST_CASE("without weight decay lamb-decayed has no trust ratio, and lamb has one") {
  for (const Method method : {Method::lamb_decayed, Method::lamb}) {
    CAPTURE(static_cast<int>(method));
    const optim::Options options{
        .method = method, .beta1 = .8, .beta2 = .95, .epsilon = 1e-4, .weight_decay = 0, .clip_norm = 0};
    CHECK(difference(options, DType::f64, 1, false) <= 1e-13);
  }
}

TEST_CASE("a frozen parameter has no gradient and no moments and does not move") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto backend = open_cpu({.threads = 1});
    Model model, all_trained;
    nn::ParameterSet parameters(model, *backend, {.dtype = dtype, .rate = rate_of}), all(all_trained, *backend);
    optim::Optimizer optimizer(parameters, {});
    CHECK(parameters.segments().back().name == "one.weight");
    CHECK_FALSE(model.one.requires_grad());
    CHECK(parameters.values().elements() == all.values().elements());
    CHECK(parameters.gradients().elements() == all.gradients().elements() - 16);  // a place is of 16 elements
    CHECK(optimizer.first_moments().shape() == parameters.gradients().shape());
    const auto before = ops::to_host<float>(parameters.master(parameters.segments().back()));
    CHECK(before == ops::to_host<float>(all.master(*all.find("one.weight"))));  // drawn alike
    ops::fill(parameters.gradients(), 1);
    optimizer.step(.1);
    CHECK(ops::to_host<float>(parameters.master(parameters.segments().back())) == before);
  }
}

TEST_CASE("an update has the same bits for any threads and kernel set") {
  for (const Method method : kMethods) {
    std::vector<float> first;
    for (const std::string& kernels : runnable_cpu_kernels())
      for (const int threads : {1, 2, 3, 8}) {
        const auto backend = open_cpu({.threads = threads, .kernels = kernels});
        Model model;
        nn::ParameterSet parameters(model, *backend);
        optim::Optimizer optimizer(parameters, {.method = method});
        for (std::uint64_t t = 1; t <= 2; ++t) {
          const Tensor& gradients = parameters.gradients();
          ops::copy_into(
              ops::from_host(noise(static_cast<std::size_t>(gradients.elements()), t), gradients.shape(), *backend),
              gradients);
          optimizer.step(.01);
        }
        const std::vector<float> values = ops::to_host<float>(parameters.values());
        if (first.empty()) first = values;
        CHECK_MESSAGE(values == first, kernels << ", " << threads << " threads");
      }
  }
}

// An approximation to start from would be the processor's own, and so would be the last bit of every variable.
TEST_CASE(
    "square roots of an update are exact on every kernel set: without moments and epsilon it is the learning rate") {
  for (const std::string& kernels : runnable_cpu_kernels()) {
    const auto backend = open_cpu({.threads = 2, .kernels = kernels});
    Model model;
    nn::ParameterSet parameters(model, *backend);
    optim::Optimizer optimizer(parameters, {.beta1 = 0, .beta2 = 0, .epsilon = 0, .weight_decay = 0, .clip_norm = 0});
    const Tensor& gradients = parameters.gradients();
    ops::copy_into(
        ops::from_host(noise(static_cast<std::size_t>(gradients.elements()), 1), gradients.shape(), *backend),
        gradients);
    const auto before = ops::to_host<float>(parameters.values()), gradient = ops::to_host<float>(gradients);
    optimizer.step(.5);
    const auto after = ops::to_host<float>(parameters.values());
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (before[i] == 0 && after[i] == 0) continue;  // memory between two variables
      CHECK(after[i] == before[i] - (gradient[i] > 0 ? .5f : -.5f));
    }
  }
}
