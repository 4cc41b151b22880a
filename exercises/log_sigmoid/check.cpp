#include "grader.h"
#include "log_sigmoid/log_sigmoid.h"
#include "tensor/backends.h"

using namespace bertrand;

const char* const kHint =
    "log σ(x) = −log(1 + e⁻ˣ) overflows for x < −709; for negative x multiply numerator and denominator of σ by eˣ. "
    "From x = 20 on e⁻ˣ loses its digits in 1 + e⁻ˣ: std::log1p";

void check(grader::Grader& grader) {
  const auto backend = open_cpu({.threads = 1});
  const auto at = [&](const char* what, const std::vector<double>& xs, const std::vector<double>& expected) {
    grader.begin(what);
    const Tensor x = ops::from_host(xs, {static_cast<Dim>(xs.size())}, *backend);
    // Relative to the value itself, however small it is.
    grader.entries("", ops::to_host<double>(log_sigmoid(Variable(x)).value()), expected, 1e-12, 0);
  };
  at("x = 0, 1, -1, 2", {0, 1, -1, 2},
     {-0.69314718055994531, -0.31326168751822283, -1.3132616875182228, -0.12692801104297252});
  at("x = -1000, -750, -40", {-1000, -750, -40}, {-1000, -750, -40});
  at("x = 20, 40, 700", {20, 40, 700}, {-2.0611536203150808e-09, -4.2483542552915889e-18, -9.8596765437597708e-305});

  grader.begin("in a graph, at x = 0.5");
  const Variable x(ops::from_host(std::vector<double>{0.5}, {1}, *backend), /*requires_grad=*/true);
  backward(log_sigmoid(x));
  grader.entry("gradient", ops::item(x.grad()), 0.37754066879814541);
}
