// Adam and LAMB by hand and by the library, and what each is for.
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "autograd/operators.h"
#include "optim/optimizer.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

// ---- a valley that is a hundred times steeper one way: L(a, b) = 50 a² + ½ b²

struct Adam {
  double m = 0, v = 0;
  int t = 0;

  double step(double w, double g, double rate) {
    ++t;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.999, t));
    return w - rate * m_hat / (std::sqrt(v_hat) + 1e-6);
  }
};

void descend_valley() {
  double a = 1, b = 1, c = 1, d = 1;
  Adam of_c, of_d;
  for (int step = 0; step <= 60; ++step) {
    if (step % 20 == 0) std::printf("step %2d: SGD a %8.5f b %8.5f   Adam a %8.5f b %8.5f\n", step, a, b, c, d);
    a -= 0.015 * 100 * a;  // the greatest rate that the steep direction bears is 0.02
    b -= 0.015 * b;
    c = of_c.step(c, 100 * c, 0.05);
    d = of_d.step(d, d, 0.05);
  }
}

// ---- the library's Adam, against the loop above

struct Weights : nn::Module {
  Weights() : w({this, "w"}, nn::init::zeros({2})) {}
  nn::Parameter w;
};

void compare_with_library(Backend& backend) {
  Weights model;
  nn::ParameterSet parameters(model, backend, {.dtype = DType::f64});
  ops::fill(model.w.value(), 1);
  optim::Optimizer optimizer(parameters, {.method = optim::Method::adamw, .weight_decay = 0, .clip_norm = 0});
  const Variable steepness(ops::from_host(std::vector<double>{50, 0.5}, {2}, backend));
  double a = 1, b = 1;
  Adam of_a, of_b;
  for (int step = 1; step <= 3; ++step) {
    parameters.zero_gradients();
    backward(sum(steepness * model.w * model.w));
    optimizer.step(0.05);
    a = of_a.step(a, 100 * a, 0.05);
    b = of_b.step(b, b, 0.05);
    const auto w = ops::to_host<double>(model.w.value());
    std::printf("step %d: by hand %.8f %.8f, by the library %.8f %.8f\n", step, a, b, w[0], w[1]);
  }
}

// ---- what warm-up is against: steps that are made of noise

void step_through_noise() {
  Random random(1);
  std::vector<Adam> adams(2000);
  for (int step = 1; step <= 100; ++step) {
    double moved = 0;
    for (Adam& adam : adams) moved += std::abs(adam.step(0, random.normal(), 1)) / static_cast<double>(adams.size());
    if (step == 1 || step == 2 || step == 5 || step == 20 || step == 100)
      std::printf("step %3d: a weight moves by %.2f rates\n", step, moved);
  }
}

// ---- weight decay: y = w x + b, fitted to y = 2 x + 10

void fit_line(const char* name, double decay_w, double decay_b) {
  const std::vector<double> xs{-1, 0, 1};
  double w = 0, b = 0;
  for (int step = 0; step < 500; ++step) {
    double dw = decay_w * w, db = decay_b * b;
    for (const double x : xs) {
      const double error = w * x + b - (2 * x + 10);
      dw += error * x;
      db += error;
    }
    w -= 0.1 * dw;
    b -= 0.1 * db;
  }
  std::printf("%-20s y = %.2f x + %.2f\n", name, w, b);
}

// ---- LAMB: two layers whose weights differ a thousandfold in size

struct Layers : nn::Module {
  Layers() : large({this, "large"}, nn::init::zeros({4})), small({this, "small"}, nn::init::zeros({4})) {}
  nn::Parameter large, small;
};

void compare_layers(const char* name, optim::Method method, Backend& backend) {
  Layers model;
  nn::ParameterSet parameters(model, backend, {.dtype = DType::f64});
  ops::fill(model.large.value(), 10);
  ops::fill(model.small.value(), 0.01);
  optim::Optimizer optimizer(parameters, {.method = method, .weight_decay = 0, .clip_norm = 0});
  parameters.zero_gradients();
  backward(sum(model.large) + sum(model.small));
  optimizer.step(0.01);
  const double large = ops::to_host<double>(model.large.value())[0],
               small = ops::to_host<double>(model.small.value())[0];
  std::printf("%-5s moves 10 by %.4f (%.1f %%) and 0.01 by %.4f (%.1f %%)\n", name, 10 - large, (10 - large) * 10,
              0.01 - small, (0.01 - small) * 1e4);
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  descend_valley();
  compare_with_library(*backend);
  step_through_noise();
  fit_line("no decay:", 0, 0);
  fit_line("w decays:", 0.3, 0);
  fit_line("w and b decay:", 0.3, 0.3);
  compare_layers("AdamW", optim::Method::adamw, *backend);
  compare_layers("LAMB", optim::Method::lamb, *backend);
}
