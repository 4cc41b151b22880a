// What the engine records, what it keeps, and what it refuses.
#include <cstdio>
#include <initializer_list>
#include <vector>

#include "autograd/operators.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

Variable leaf(const std::vector<double>& values, const Shape& shape, Backend& backend) {
  return Variable(ops::from_host(values, shape, backend), /*requires_grad=*/true);
}

void print(const char* name, const Tensor& x) {
  std::printf("%-12s", name);
  for (const double v : ops::to_host<double>(x)) std::printf(" %g", v);
  std::printf("\n");
}

void show_two_uses(Backend& backend) {
  const Variable w = leaf({1}, {1}, backend);
  backward(w * w + 3 * w);
  print("dL/dw", w.grad());
}

void show_accumulation(Backend& backend) {
  Variable w = leaf({1}, {1}, backend);
  for (int step = 0; step < 3; ++step) backward(3 * w);
  print("3 passes", w.grad());
  w.zero_grad();
  backward(3 * w);
  print("after zero", w.grad());
}

/// Ten steps down the loss of chapter 0; the gradients of earlier steps are forgotten, or not.
void show_descent(bool forget, Backend& backend) {
  const Variable x(ops::from_host(std::vector<double>{1, 2, 3}, {3, 1}, backend));
  const Variable y(ops::from_host(std::vector<double>{2, 3, 7}, {3, 1}, backend));
  Variable w = leaf({1}, {1}, backend);
  std::printf("%s", forget ? "with zero_grad   " : "without zero_grad");
  for (int step = 0; step <= 10; ++step) {
    if (forget) w.zero_grad();
    const Variable error = x * w - y, loss = mean(error * error);
    backward(loss);
    if (step % 2 == 0) std::printf(" %7.3f", ops::item(loss.value()));
    ops::add_into(ops::scale(w.grad(), -0.05), w.value());
  }
  std::printf("\n");
}

void show_broadcasting(Backend& backend) {
  const Variable x(ops::from_host(std::vector<double>{1, 2, 3, 4, 5, 6}, {3, 2}, backend));
  const Variable bias = leaf({0, 0}, {2}, backend), gain = leaf({1, 1}, {2}, backend);
  backward(sum(x * gain + bias));
  print("d bias", bias.grad());
  print("d gain", gain.grad());
}

void show_refusals(Backend& backend) {
  const Variable w = leaf({1, 2}, {2}, backend);
  const Variable loss = sum(w * w);
  backward(loss);
  try {
    backward(loss);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  const Variable again = sum(w * w);
  ops::add_into(ops::full({2}, 1, DType::f64, backend), w.value());
  try {
    backward(again);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  const NoGrad guard;
  std::printf("under NoGrad a result wants a gradient: %s\n", (w * w).requires_grad() ? "yes" : "no");
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  show_two_uses(*backend);
  show_accumulation(*backend);
  for (const bool forget : {true, false}) show_descent(forget, *backend);
  show_broadcasting(*backend);
  show_refusals(*backend);
}
