// The scalar engine of the book and the tensor engine, on the same list of expressions and inputs: both must give the
// value, and both gradients must be what central differences say.
#include "scalar_engine.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "autograd/operators.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

/// One expression, for both engines and for plain numbers.
struct Expression {
  const char* text;
  std::function<scalar::Value(const scalar::Value&, const scalar::Value&)> of_values;
  std::function<Variable(const Variable&, const Variable&)> of_variables;
};
template <class F>
Expression expression(const char* text, const F& f) {
  return {text, f, f};
}

const std::vector<Expression> kExpressions = {
    expression("x + y", [](auto& x, auto& y) { return x + y; }),
    expression("x - y", [](auto& x, auto& y) { return x - y; }),
    expression("x * y", [](auto& x, auto& y) { return x * y; }),
    expression("x / y", [](auto& x, auto& y) { return x / y; }),
    expression("-x * y", [](auto& x, auto& y) { return -x * y; }),
    expression("exp(x) * y", [](auto& x, auto& y) { return exp(x) * y; }),
    expression("log(y) - x", [](auto& x, auto& y) { return log(y) - x; }),
    expression("sqrt(y) * x", [](auto& x, auto& y) { return sqrt(y) * x; }),
    expression("tanh(x y)", [](auto& x, auto& y) { return tanh(x * y); }),
    expression("relu(x) + relu(-x) y", [](auto& x, auto& y) { return relu(x) + relu(-x) * y; }),
    expression("numbers on either side", [](auto& x, auto& y) { return 2 * x + 3 - x / 4 + 1 / y; }),
    expression("a value that is used several times", [](auto& x, auto& y) { return x * x * x + y * x; }),
    expression("a result that is used twice",
               [](auto& x, auto& y) {
                 const auto once = tanh(x * y + 1);
                 return once * once + once;
               }),
    expression("a deep one",
               [](auto& x, auto& y) { return log(1 + exp(-y * tanh(0.5 * x - 0.25))) / (x * x + 1) + 0 * y; }),
};

struct Inputs {
  double x, y;
};
const std::vector<Inputs> kInputs = {{0.5, 2}, {-1.5, 0.25}, {3, 1}, {-0.1, 7}};

double plain(const Expression& e, double x, double y) { return e.of_values(x, y).value(); }

/// The value and the gradients, by each engine.
struct Result {
  double value, dx, dy;
};
Result by_scalars(const Expression& e, const Inputs& at) {
  const scalar::Value x(at.x), y(at.y), loss = e.of_values(x, y);
  loss.backward();
  return {loss.value(), x.gradient(), y.gradient()};
}
Result by_tensors(const Expression& e, const Inputs& at, Backend& backend) {
  const Variable x(ops::full({1}, at.x, DType::f64, backend), true), y(ops::full({1}, at.y, DType::f64, backend), true);
  const Variable loss = e.of_variables(x, y);
  backward(loss);
  return {ops::item(loss.value()), ops::item(x.grad()), ops::item(y.grad())};
}

}  // namespace

TEST_CASE("the scalar engine and the tensor engine agree with each other and with differences") {
  const auto backend = open_cpu({.threads = 1});
  constexpr double kStep = 1e-6;
  for (const Expression& e : kExpressions)
    for (const Inputs& at : kInputs) {
      CAPTURE(e.text);
      CAPTURE(at.x);
      CAPTURE(at.y);
      const Result scalars = by_scalars(e, at), tensors = by_tensors(e, at, *backend);
      CHECK(scalars.value == doctest::Approx(tensors.value).epsilon(1e-12));
      CHECK(scalars.dx == doctest::Approx(tensors.dx).epsilon(1e-12));
      CHECK(scalars.dy == doctest::Approx(tensors.dy).epsilon(1e-12));
      const double dx = (plain(e, at.x + kStep, at.y) - plain(e, at.x - kStep, at.y)) / (2 * kStep);
      const double dy = (plain(e, at.x, at.y + kStep) - plain(e, at.x, at.y - kStep)) / (2 * kStep);
      CHECK(scalars.dx == doctest::Approx(dx).epsilon(1e-7));
      CHECK(scalars.dy == doctest::Approx(dy).epsilon(1e-7));
    }
}

TEST_CASE("both engines add to the gradients of leaves until they are set to zero") {
  const auto backend = open_cpu({.threads = 1});
  scalar::Value a(3);
  Variable b(ops::full({1}, 3, DType::f64, *backend), true);
  for (int pass = 1; pass <= 2; ++pass) {
    (a * a).backward();
    backward(b * b);
    CHECK(a.gradient() == 6.0 * pass);
    CHECK(ops::item(b.grad()) == 6.0 * pass);
  }
  a.zero_gradient();
  CHECK(a.gradient() == 0);
}

TEST_CASE("the scalar engine walks the same graph twice") {
  const scalar::Value x(3), square = x * x, loss = square * x;
  loss.backward();
  loss.backward();
  CHECK(x.gradient() == 2 * 27);
}
