// The gradient check finds wrong derivatives and says where.
#include "autograd/gradient_check.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/operators.h"
#include "autograd/wanted.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

using Inputs = std::vector<Variable>;

Tensor numbers(const std::vector<double>& values, const Shape& shape, Backend& backend) {
  return ops::from_host(values, shape, backend);
}

/// x², whose gradient is multiplied by 1 + error · (1 at `entry`, else 0).
Variable square(const Variable& x, double error, std::size_t entry) {
  return record("square", ops::binary(Binary::mul, x.value(), x.value()), {x},
                [=, x = x.value()](const Tensor& dy, Wanted&) {
                  std::vector<double> slope = ops::to_host<double>(x);
                  for (std::size_t i = 0; i < slope.size(); ++i) slope[i] *= 2 * (1 + (i == entry ? error : 0));
                  return Grads{ops::binary(Binary::mul, dy, ops::from_host(slope, x.shape(), x.backend()))};
                });
}

}  // namespace

TEST_CASE("right gradients have no wrong entry") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = numbers({0.3, -1, 2, 0.5, 4, -3}, {2, 3}, *backend), w = numbers({1, -2, 3}, {3}, *backend);
  CHECK(check_gradient([](const Inputs& in) { return softmax(in[0] * in[1]) / (exp(in[0]) + 1); }, {x, w}).empty());
  CHECK(check_gradient([](const Inputs& in) { return square(in[0], 0, 0); }, {x}).empty());
  CHECK(check_gradient([](const Inputs& in) { return 1e6 * (in[0] * in[0]); }, {x}).empty());
}

TEST_CASE("a wrong entry is named with its value and both slopes") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = numbers({0.3, -1, 2, 0.5}, {2, 2}, *backend);
  const auto wrong = check_gradient([](const Inputs& in) { return square(in[1], 0.001, 2) + in[0]; }, {x, x});
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0].input == 1);
  CHECK(wrong[0].entry == 2);
  CHECK(wrong[0].x == 2);
  CHECK(wrong[0].backward == doctest::Approx(1.001 * wrong[0].differences));
  CHECK(wrong[0].text().starts_with("input 1, entry 2 (x = 2): backward says "));
}

TEST_CASE("a wrong entry is found wherever it is") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = numbers({0.3, -1, 2, 0.5}, {2, 2}, *backend);
  for (std::size_t entry = 0; entry < 4; ++entry) {
    const auto wrong = check_gradient([&](const Inputs& in) { return square(in[0], 0.001, entry); }, {x});
    REQUIRE(wrong.size() == 1);
    CHECK(wrong[0].entry == static_cast<Dim>(entry));
  }
}

TEST_CASE("a gradient that is not a number is wrong") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = numbers({1, 2}, {2}, *backend);
  CHECK(check_gradient([](const Inputs& in) { return square(in[0], NAN, 1); }, {x}).size() == 1);
}

TEST_CASE("an input that is not f64 or is not used is refused") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = numbers({1, 2}, {2}, *backend);
  CHECK(support::refusal(Failure::bug, [&] {
          check_gradient([](const Inputs& in) { return in[0]; }, {ops::cast(x, DType::f32)});
        }) == "check_gradient: expected inputs of f64, got f32");
  CHECK(support::refusal(Failure::bug, [&] {
          check_gradient([](const Inputs& in) { return in[0] * in[0]; }, {x, x});
        }) == "check_gradient: expected a gradient for input 1, got none");
}
