// swish(x) = x / (1 + e⁻ˣ): composed of other ops, then as an op with a derivative of its own, and both checked.
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "autograd/operators.h"
#include "autograd/wanted.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

using Function = std::function<Variable(const Variable&)>;

Variable composed(const Variable& x) { return x / (1 + exp(-x)); }

/// σ(x) = 1 / (1 + e⁻ˣ), by tanh, which cannot overflow.
Tensor sigmoid(const Tensor& x) {
  const Tensor half = ops::scale(ops::unary(Unary::tanh, ops::scale(x, 0.5)), 0.5);
  return ops::binary(Binary::add, half, ops::full(x.shape(), 0.5, x.dtype(), x.backend()));
}

Variable swish(const Variable& x) {
  const Tensor s = sigmoid(x.value());
  const Tensor y = ops::binary(Binary::mul, x.value(), s);
  return record("swish", y, {x}, [s, y](const Tensor& dy, Wanted&) {
    // f′ = σ + x σ (1 − σ) = σ + y (1 − σ) = y + σ (1 − y)
    const Tensor rest = ops::binary(Binary::sub, ops::full(y.shape(), 1, y.dtype(), y.backend()), y);
    const Tensor slope = ops::binary(Binary::add, y, ops::binary(Binary::mul, s, rest));
    return Grads{ops::binary(Binary::mul, dy, slope)};
  });
}

/// The same, with a mistake that is easy to make.
Variable wrong(const Variable& x) {
  const Tensor s = sigmoid(x.value());
  return record("wrong", ops::binary(Binary::mul, x.value(), s), {x}, [s](const Tensor& dy, Wanted&) {
    return Grads{ops::binary(Binary::mul, dy, s)};  // forgets that σ changes with x too
  });
}

/// Compares backward with differences, entry by entry.
void compare_with_differences(const char* name, const Function& f, Backend& backend) {
  const std::vector<double> xs{-2, 0, 3};
  const Variable x(ops::from_host(xs, {3}, backend), /*requires_grad=*/true);
  backward(sum(f(x)));
  const std::vector<double> by_backward = ops::to_host<double>(x.grad());
  const double h = 1e-5;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto value_at = [&](double moved) {
      std::vector<double> all = xs;
      all[i] = moved;
      return ops::item(sum(f(Variable(ops::from_host(all, {3}, backend)))).value());
    };
    const double by_differences = (value_at(xs[i] + h) - value_at(xs[i] - h)) / (2 * h);
    std::printf("%-9s at %2g: backward %.6f, differences %.6f%s\n", name, xs[i], by_backward[i], by_differences,
                std::abs(by_backward[i] - by_differences) < 1e-8 ? "" : "  <- differs");
  }
}

void far_from_zero(const char* name, const Function& f, Backend& backend) {
  const Variable x(ops::from_host(std::vector<double>{-800}, {1}, backend), /*requires_grad=*/true);
  const Variable y = f(x);
  backward(sum(y));
  const double slope = ops::to_host<double>(x.grad())[0];
  std::printf("%-9s at -800: value %g, slope %s\n", name, std::abs(ops::item(y.value())),
              std::isnan(slope)          ? "NaN"
              : std::abs(slope) < 1e-300 ? "0"
                                         : "something else");
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  compare_with_differences("composed", composed, *backend);
  compare_with_differences("swish", swish, *backend);
  compare_with_differences("wrong", wrong, *backend);
  far_from_zero("composed", composed, *backend);
  far_from_zero("swish", swish, *backend);
}
