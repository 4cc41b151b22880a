#include "autograd/gradient_check.h"
#include "gelu_derivative/gelu_derivative.h"
#include "grader.h"
#include "tensor/backends.h"

using namespace bertrand;

const char* const kHint =
    "y is a product, so its slope has two terms, and tanh u has an inner derivative; at x = 0 one term is left: ½; "
    "if only the second part differs, dy is missing";

void check(grader::Grader& grader) {
  const auto backend = open_cpu({.threads = 1});
  const std::vector<double> xs{-3, -1, -0.1, 0, 0.5, 1, 4};
  const Tensor x = ops::from_host(xs, {static_cast<Dim>(xs.size())}, *backend);
  grader.begin("gradient of the sum");
  const Variable leaf(x, /*requires_grad=*/true);
  backward(sum(my_gelu(leaf)));
  const std::vector<double> expected{-0.011584166630969516, -0.08296408384578255, 0.4204782107282433, 0.5,
                                     0.8673699035346424,    1.0829640838457826,   1.000335123197122};
  const std::vector<double> got = ops::to_host<double>(leaf.grad());
  for (std::size_t i = 0; i < xs.size(); ++i)
    grader.entry(fmt::format("entry {} (x = {})", i, xs[i]), got[i], expected[i]);
  // Each entry with another factor from above.
  const auto f = [](const std::vector<Variable>& in) { return my_gelu(in[0]); };
  grader.begin("with other numbers from above, against differences");
  const std::vector<WrongEntry> wrong_ones = check_gradient(f, {x});
  grader.right(static_cast<int>(xs.size() - wrong_ones.size()));
  for (const WrongEntry& wrong : wrong_ones)
    grader.entry(fmt::format("entry {} (x = {})", wrong.entry, wrong.x), wrong.backward, wrong.differences);
}
