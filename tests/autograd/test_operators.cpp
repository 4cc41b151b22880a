// The operators on variables: each is its op, on either side of a number.
#include "autograd/operators.h"

#include <doctest/doctest.h>

#include "tensor/backends.h"

using namespace bertrand;

namespace {

using Numbers = std::vector<double>;

struct Operators {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  Variable a = of({6, 8}), b = of({2, 4});

  Variable of(const Numbers& values) const {
    return Variable(ops::from_host(values, {static_cast<Dim>(values.size())}, *backend), true);
  }
  /// The value of f, then the gradients of a and b.
  std::vector<Numbers> both_ways(const std::function<Variable(const Variable&, const Variable&)>& f) {
    a.zero_grad();
    b.zero_grad();
    const Variable y = f(a, b);
    backward(sum(y));
    const auto host = [](const Tensor& x) { return x ? ops::to_host<double>(x) : Numbers{}; };
    return {host(y.value()), host(a.grad()), host(b.grad())};
  }
};

using Rows = std::vector<Numbers>;

}  // namespace

TEST_CASE("operators of two variables compute element by element") {
  Operators o;
  CHECK(o.both_ways([](auto& a, auto& b) { return a + b; }) == Rows{{8, 12}, {1, 1}, {1, 1}});
  CHECK(o.both_ways([](auto& a, auto& b) { return a - b; }) == Rows{{4, 4}, {1, 1}, {-1, -1}});
  CHECK(o.both_ways([](auto& a, auto& b) { return a * b; }) == Rows{{12, 32}, {2, 4}, {6, 8}});
  CHECK(o.both_ways([](auto& a, auto& b) { return a / b; }) == Rows{{3, 2}, {0.5, 0.25}, {-1.5, -0.5}});
  CHECK(o.both_ways([](auto& a, auto&) { return -a; }) == Rows{{-6, -8}, {-1, -1}, {}});
}

TEST_CASE("operators take a number on either side") {
  Operators o;
  CHECK(o.both_ways([](auto& a, auto&) { return a + 1; }) == Rows{{7, 9}, {1, 1}, {}});
  CHECK(o.both_ways([](auto& a, auto&) { return 1 + a; }) == Rows{{7, 9}, {1, 1}, {}});
  CHECK(o.both_ways([](auto& a, auto&) { return a - 1; }) == Rows{{5, 7}, {1, 1}, {}});
  CHECK(o.both_ways([](auto& a, auto&) { return 1 - a; }) == Rows{{-5, -7}, {-1, -1}, {}});
  CHECK(o.both_ways([](auto& a, auto&) { return a * 3; }) == Rows{{18, 24}, {3, 3}, {}});
  CHECK(o.both_ways([](auto& a, auto&) { return 3 * a; }) == Rows{{18, 24}, {3, 3}, {}});
  CHECK(o.both_ways([](auto& a, auto&) { return a / 2; }) == Rows{{3, 4}, {0.5, 0.5}, {}});
  CHECK(o.both_ways([](auto&, auto& b) { return 8 / b; }) == Rows{{4, 2}, {}, {-2, -0.5}});
}

TEST_CASE("a number is added to every element of a matrix and of a scalar") {
  const auto backend = open_cpu({.threads = 1});
  const Variable matrix(ops::full({2, 3}, 1, DType::f32, *backend)), one(ops::full({}, 1, DType::f32, *backend));
  CHECK(ops::to_host<double>((matrix + 2).value()) == Numbers(6, 3));
  CHECK((matrix + 2).shape() == Shape{2, 3});
  CHECK(ops::item((one + 2).value()) == 3);
}
