// A straight line through points: gradient descent in one line.
//
// What to see: the flat tensors of a ParameterSet are what an optimizer works on, so that a step of SGD is
// values += −rate · gradients.
#include <cmath>
#include <cstdio>
#include <vector>

#include "autograd/operators.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

/// y = slope · x + offset
struct Line : nn::Module {
  Line() : slope({this, "slope"}, nn::init::zeros({1})), offset({this, "offset"}, nn::init::zeros({1})) {}
  Variable operator()(const Variable& x) const { return x * slope + offset; }

  nn::Parameter slope, offset;  // [1] each
};

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  const std::vector<float> xs{-1, 0, 1, 2}, ys{-1, 1, 3, 5};  // of y = 2 x + 1
  const Variable x(ops::from_host(xs, {4, 1}, *backend)), y(ops::from_host(ys, {4, 1}, *backend));

  Line line;
  nn::ParameterSet parameters(line, *backend);
  for (int step = 0; step <= 60; ++step) {
    parameters.zero_gradients();
    const Variable error = line(x) - y;
    const Variable loss = mean(error * error);
    backward(loss);
    ops::add_into(ops::scale(parameters.gradients(), -0.1), parameters.values());  // SGD: w ← w − 0.1 dL/dw
    if (step % 20 == 0) std::printf("step %2d  loss %.6f\n", step, ops::item(loss.value()));
  }
  std::printf("y = %.3f x + %.3f\n", ops::item(line.slope.value()), ops::item(line.offset.value()));
  return std::abs(ops::item(line.slope.value()) - 2) < 0.01 ? 0 : 1;
}
