#include <cmath>

#include "autograd/gradient_check.h"
#include "find_the_bug/find_the_bug.h"
#include "grader.h"
#include "tensor/backends.h"

using namespace bertrand;

const char* const kHint =
    "the value is right, and so is every gradient if gamma is 1 everywhere: where does gamma enter the derivative?";

void check(grader::Grader& grader) {
  const auto backend = open_cpu({.threads = 1});
  const std::vector<double> xs{1, 2, 2, -0.5, 0.25, 3};
  const Tensor x = ops::from_host(xs, {2, 3}, *backend);
  const auto gamma = [&](const std::vector<double>& values) { return ops::from_host(values, {3}, *backend); };

  grader.begin("the value");
  const Variable y = rms_norm(Variable(x), Variable(gamma({1, -2, 0.5})), 0);
  const double r = std::sqrt(3), s = std::sqrt((0.25 + 0.0625 + 9) / 3);
  grader.entries("", ops::to_host<double>(y.value()), {1 / r, -4 / r, 1 / r, -0.5 / s, -0.5 / s, 1.5 / s});

  const auto f = [](const std::vector<Variable>& in) { return rms_norm(in[0], in[1], 1e-6); };
  const auto compare = [&](const char* what, const Tensor& g) {
    grader.begin(what);
    const std::vector<WrongEntry> wrong_ones = check_gradient(f, {x, g});
    grader.right(static_cast<int>(9 - wrong_ones.size()));  // of 6 of x and 3 of gamma
    for (const WrongEntry& wrong : wrong_ones)
      grader.entry(fmt::format("{} entry {}", wrong.input == 0 ? "dx" : "dgamma", wrong.entry), wrong.backward,
                   wrong.differences);
  };
  compare("gamma = 1, 1, 1, against differences", gamma({1, 1, 1}));
  compare("gamma = 1, -2, 0.5, against differences", gamma({1, -2, 0.5}));
}
