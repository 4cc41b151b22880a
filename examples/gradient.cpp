// A gradient by hand and by the engine.
//
// The function is L(w) = Σ (x·w − y)² / n. Its gradient by hand is dL/dw = 2 xᵀ (x·w − y) / n.
// The engine knows no formula for L. It records which ops were called and asks each, last first, how gradients flow.
#include <cmath>
#include <cstdio>
#include <vector>

#include "autograd/ops.h"
#include "tensor/backends.h"

using namespace bertrand;

int main() {
  const auto backend = open_cpu({.threads = 1});
  const std::vector<double> xs{1, 2, 3, 4, 5, 6}, ys{1, 0, 2}, ws{0.5, -0.25};  // x [3, 2], y [3, 1], w [2, 1]

  const Variable x(ops::from_host(xs, {3, 2}, *backend));
  const Variable w(ops::from_host(ws, {2, 1}, *backend), /*requires_grad=*/true);
  const Variable prediction = matmul(x, w);
  const Variable loss = mse(prediction, ops::from_host(ys, {3, 1}, *backend), /*denominator=*/3);
  backward(loss);
  const std::vector<double> by_engine = ops::to_host<double>(w.grad());

  std::vector<double> by_hand(2, 0.0);
  for (int row = 0; row < 3; ++row) {
    const double error = xs[2 * row] * ws[0] + xs[2 * row + 1] * ws[1] - ys[row];
    for (int column = 0; column < 2; ++column) by_hand[column] += 2 * xs[2 * row + column] * error / 3;
  }

  std::printf("loss %.6f\n", ops::item(loss.value()));
  bool equal = true;
  for (int i = 0; i < 2; ++i) {
    std::printf("dL/dw[%d]: by hand %.12f, by the engine %.12f\n", i, by_hand[i], by_engine[i]);
    equal = equal && std::abs(by_hand[i] - by_engine[i]) < 1e-12;
  }
  return equal ? 0 : 1;
}
