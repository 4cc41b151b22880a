// The engine: how gradients travel, and what it does with graphs that are deep, shared, or wrong.
#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

Variable leaf(const std::vector<double>& values, Backend& backend, bool requires_grad = true) {
  return Variable(ops::from_host(values, {static_cast<Dim>(values.size())}, backend), requires_grad);
}

}  // namespace

TEST_CASE("dropping a deep graph does not overflow the stack") {
  const auto backend = open_cpu({.threads = 1});
  Variable y = leaf({1}, *backend);
  for (int i = 0; i < 500'000; ++i) y = scale(y, 1.0);
}

TEST_CASE("a deep chain is walked without recursion and leaves no memory behind") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1}, *backend);
  {
    Variable y = x;
    for (int i = 0; i < 200'000; ++i) y = scale(y, 1.0);
    backward(y);
  }
  CHECK(ops::item(x.grad()) == 1.0);
  CHECK(backend->memory().in_use == 2 * 64);  // x and its gradient
}

TEST_CASE("a value used several times gets the sum of its gradients, and backward adds to what is there") {
  const auto backend = open_cpu({.threads = 1});
  Variable x = leaf({3}, *backend);
  for (int pass = 1; pass <= 2; ++pass) {
    const Variable square = mul(x, x);
    backward(sum(add(mul(square, x), square)));  // x³ + x²: 3x² + 2x = 33
    CHECK(ops::item(x.grad()) == 33.0 * pass);
  }
  x.zero_grad();
  CHECK_FALSE(x.grad());
}

TEST_CASE("under NoGrad nothing is recorded and nothing is kept") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1, 2}, *backend);
  const NoGrad guard;
  CHECK_FALSE(mul(x, x).requires_grad());
  CHECK(backend->memory().in_use == 64);
}

TEST_CASE("a buffer is overwritten by the first writer of a pass and added to by the next") {
  const auto backend = open_cpu({.threads = 1});
  const Variable w(ops::from_host(std::vector<double>{1, 2, 3, 4}, {2, 2}, *backend), true);
  const Tensor buffer = ops::full({2, 2}, 1e9, DType::f64, *backend);  // what an earlier step left
  w.slot()->buffer = buffer;
  const Variable x(ops::from_host(std::vector<double>{1, 0}, {1, 2}, *backend));
  backward(sum(matmul(matmul(x, w), w)));  // both products write dw
  CHECK(w.grad().same_memory(buffer));
  CHECK(ops::to_host<double>(buffer) == std::vector<double>{4, 8, 2, 2});  // x·w·w·1: by hand
}

TEST_CASE("an op that returns too few gradients, or one of another shape, is named") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1, 2}, *backend);
  const Tensor y = ops::full({1}, 0, DType::f64, *backend);
  const Variable few = record("too_few", y, {x}, [](const Tensor&, Wanted&) { return Grads{}; });
  CHECK_THROWS_WITH_AS(backward(few), "too_few: backward gave 0 gradients for 1 inputs", Error);
  const Variable wrong = record("wrong_shape", y, {x}, [](const Tensor& dy, Wanted&) { return Grads{dy}; });
  CHECK_THROWS_WITH_AS(backward(wrong), "wrong_shape: gradient 0 is [1] but the input is [2]", Error);
  CHECK_THROWS_WITH_AS(backward(x), "backward: the loss must have one element, got [2]", Error);
}

TEST_CASE("CheckFinite names the op that first made a number that is none") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1e200, 1}, *backend);
  mul(mul(x, x), x);  // silent without it
  const CheckFinite guard;
  CHECK_THROWS_WITH_AS(mul(x, x), "op mul: forward: element 0 of [2] is not finite", Error);
}

TEST_CASE("a scale of the loss scales every gradient") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({5}, *backend);
  backward(mul(x, x), 1024);
  CHECK(ops::item(x.grad()) == 10240.0);
}
