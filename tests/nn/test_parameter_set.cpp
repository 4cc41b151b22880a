// Names, memory, initial values and gradients of a ParameterSet.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "nn/layers.h"
#include "nn/parameter_set.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

struct Model : nn::Module {
  Model()
      : attention(in("attention"), {.hidden = 6, .heads = 2}),
        output(in("output"), {.in_features = 6, .out_features = 3}) {}
  nn::SelfAttention attention;
  nn::Linear output;
};

}  // namespace

TEST_CASE("parameters are named by their place in the tree and stacked ones by each part") {
  const auto backend = open_cpu({.threads = 1});
  Model model;
  const nn::ParameterSet parameters(model, *backend);
  std::vector<std::string> names;
  for (const auto& segment : parameters.segments()) names.push_back(segment.name);
  CHECK(names == std::vector<std::string>{"attention.query.weight", "attention.key.weight", "attention.value.weight",
                                          "attention.query.bias", "attention.key.bias", "attention.value.bias",
                                          "output.weight", "output.bias"});
}

TEST_CASE("the names and shapes of segments are known before there is memory for them") {
  const auto backend = open_cpu({.threads = 1});
  Model model;
  const auto planned = nn::ParameterSet::segments_of(model);
  CHECK_FALSE(static_cast<bool>(model.attention.weight));
  const nn::ParameterSet parameters(model, *backend);
  REQUIRE(planned.size() == parameters.segments().size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    CHECK(planned[i].name == parameters.segments()[i].name);
    CHECK(planned[i].shape == parameters.segments()[i].shape);
  }
}

TEST_CASE("the parts of a stacked parameter lie back to back in its tensor") {
  const auto backend = open_cpu({.threads = 1});
  Model model;
  const nn::ParameterSet parameters(model, *backend);
  const auto whole = ops::to_host<float>(model.attention.weight.value());
  const auto key = ops::to_host<float>(parameters.value(*parameters.find("attention.key.weight")));
  CHECK(std::equal(key.begin(), key.end(), whole.begin() + 36));
}

TEST_CASE("initial values are a function of seed and name alone") {
  const auto one = open_cpu({.threads = 1}), two = open_cpu({.threads = 2});
  Model a, b, c;
  const nn::ParameterSet first(a, *one, {.seed = 7}), again(b, *two, {.seed = 7}), other(c, *one, {.seed = 8});
  CHECK(ops::to_host<float>(first.values()) == ops::to_host<float>(again.values()));
  CHECK(ops::to_host<float>(first.values()) != ops::to_host<float>(other.values()));
  for (const float v : ops::to_host<float>(a.output.weight.value())) CHECK(std::abs(v) <= 0.04f);
  for (const float v : ops::to_host<float>(a.output.bias.value())) CHECK(v == 0);
}

TEST_CASE(
    "initial values have the spread of a normal distribution that is cut at two deviations, and no part repeats") {
  struct Table : nn::Module {
    nn::Parameter table{in("table"), nn::init::truncated_normal({40'000}, 0.5)};
  };
  const auto backend = open_cpu({.threads = 2});
  Table model;
  const nn::ParameterSet parameters(model, *backend);
  const std::vector<float> values = ops::to_host<float>(parameters.values());
  double squares = 0, greatest = 0;
  for (const float v : values) squares += v * v, greatest = std::max(greatest, static_cast<double>(std::abs(v)));
  // of N(0, 1) within ±2: the variance is 1 − 4 φ(2) / (2 Φ(2) − 1) = 0.7737
  CHECK(std::sqrt(squares / static_cast<double>(values.size())) == doctest::Approx(0.5 * 0.8796).epsilon(0.01));
  CHECK(greatest <= 1);
  CHECK(greatest > 0.95);
  for (const std::size_t begin : {1024U, 4096U, 16'384U, 32'768U})
    CHECK_FALSE(std::equal(values.begin(), values.begin() + 1000, values.begin() + static_cast<std::ptrdiff_t>(begin)));
}

TEST_CASE("who reads the gradients sees zeros for parameters that no backward pass reached") {
  const auto backend = open_cpu({.threads = 1});
  Model model;
  nn::ParameterSet parameters(model, *backend, {.dtype = DType::f64});
  ops::fill(parameters.gradients(), 1e9);
  parameters.zero_gradients();
  const Variable x(ops::full({2, 6}, 1, DType::f64, *backend));
  backward(sum(model.output(x)));
  CHECK(ops::to_host<double>(parameters.gradient(*parameters.find("attention.key.weight"))) ==
        std::vector<double>(36, 0.0));
  for (const double v : ops::to_host<double>(model.output.weight.grad())) CHECK(v == 2);
  for (const double v : ops::to_host<double>(model.attention.weight.grad())) CHECK(v == 0);
}

TEST_CASE("a set without gradients takes the memory of its values alone and records nothing") {
  const auto backend = open_cpu({.threads = 1});
  Model model;
  const std::size_t before = backend->memory().in_use;
  const nn::ParameterSet parameters(model, *backend, {.gradients = false});
  CHECK(backend->memory().in_use - before == parameters.values().bytes());
  const Variable x(ops::full({2, 6}, 1, DType::f32, *backend));
  CHECK_FALSE(model.output(x).requires_grad());

  Model trained_before;
  { const nn::ParameterSet trained(trained_before, *backend); }
  const nn::ParameterSet now(trained_before, *backend, {.gradients = false});
  CHECK_FALSE(trained_before.output(x).requires_grad());
}

TEST_CASE("a parameter of more elements than are drawn at a time is drawn to its end") {
  static constexpr Dim kDrawn = Dim{1} << 20, kAll = kDrawn + 40'000;
  struct Large : nn::Module {
    Large() : w(in("w"), nn::init::truncated_normal({kAll}, 1)) {}
    nn::Parameter w;
  };
  const auto backend = open_cpu({.threads = 1});
  Large model;
  const nn::ParameterSet parameters(model, *backend, {.dtype = DType::bf16});
  const auto masters = ops::to_host<float>(parameters.masters());
  CHECK(masters[kDrawn] != 0);
  CHECK(masters[kAll - 1] != 0);
  CHECK_FALSE(std::equal(masters.begin(), masters.begin() + 1000, masters.begin() + kDrawn));
  CHECK(ops::to_host<float>(parameters.values()) == ops::to_host<float>(ops::cast(parameters.masters(), DType::bf16)));
}

TEST_CASE("a parameter whose first axis its names cannot share in equal parts is refused") {
  nn::Module root;
  const auto refused = [&](const std::vector<std::string>& names, const Shape& shape) {
    return !support::refusal(Failure::bug, [&] { const nn::Parameter w(root, names, nn::init::zeros(shape)); }).empty();
  };
  CHECK_FALSE(refused({"a", "b"}, {4}));
  CHECK(refused({"a", "b"}, {3}));
  CHECK(refused({"a"}, {}));
  CHECK(refused({}, {4}));
}

TEST_CASE("a layer without memory says how it gets some") {
  const auto backend = open_cpu({.threads = 1});
  const Model model;
  const Variable x(ops::full({2, 6}, 1, DType::f32, *backend));
  CHECK_THROWS_WITH_AS(model.output(x),
                       "variable: expected a value, got none; hint: a layer's parameters have no memory; make a "
                       "ParameterSet of the model before you use it",
                       Error);
}

TEST_CASE("a value or gradient that is not finite is found by name") {
  const auto backend = open_cpu({.threads = 1});
  Model model;
  const nn::ParameterSet parameters(model, *backend);
  CHECK(parameters.first_non_finite(parameters.gradients()).empty());
  CHECK(parameters.first_non_finite(parameters.values()).empty());
  for (const auto& segment : parameters.segments())
    for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
      for (const Dim place : {Dim{0}, segment.count() - 1})
        for (const Tensor& whole : {parameters.gradient(segment), parameters.value(segment)}) {
          const Tensor one = whole.reshape({segment.count()}).window(place, {1});
          const Tensor before = ops::copy(one);
          ops::fill(one, bad);
          const bool value = whole.same_memory(parameters.value(segment));
          CHECK(parameters.first_non_finite(parameters.gradients()) == (value ? "" : segment.name));
          CHECK(parameters.first_non_finite(parameters.values()) == (value ? segment.name : ""));
          ops::copy_into(before, one);
        }
    }
}
