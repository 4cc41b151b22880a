// Why half types need masters and f16 a loss scale.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "optim/optimizer.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

struct Weights : nn::Module {
  Weights() : w({this, "w"}, nn::init::zeros({1})) {}
  nn::Parameter w;
};

/// A thousand steps of 0.0001 from 1.
void add_small_steps() {
  BFloat16 plain(1.0f);
  float master = 1;
  for (int i = 0; i < 1000; ++i) {
    plain = BFloat16(static_cast<float>(plain) + 0.0001f);
    master += 0.0001f;
  }
  std::printf("1 + 1000 * 0.0001 in bf16: %.4f, with a master in f32: %.4f\n", static_cast<float>(plain),
              static_cast<float>(BFloat16(master)));
}

void scale_a_small_number() {
  const float gradient = 1e-8f, scale = 65536;
  std::printf("1e-8 in f16: %g, scaled by 2^16 and back: %g\n", static_cast<float>(Float16(gradient)),
              static_cast<float>(Float16(gradient * scale)) / scale);
}

/// Steps with these gradients, as they come out of backward, so already scaled.
void run_steps(Backend& backend) {
  Weights model;
  nn::ParameterSet parameters(model, backend, {.dtype = DType::f16});
  optim::Optimizer optimizer(parameters, {.method = optim::Method::adamw, .weight_decay = 0, .clip_norm = 0});
  for (const double gradient : {1.0, std::numeric_limits<double>::infinity(), 1.0}) {
    const Tensor gradients = ops::full({parameters.gradients().elements()}, gradient, DType::f16, backend);
    const Tensor numbers = optimizer.update(0.1, gradients);
    const std::vector<double> on_host = ops::to_host<double>(numbers);
    const auto report = optimizer.read(std::span<const double, 4>(on_host.data(), 4));
    std::printf("gradient %3g: w %7.4f, loss scale %g, skipped %d\n", gradient, ops::item(model.w.value()),
                report.loss_scale.scale, static_cast<int>(report.loss_scale.skipped_steps));
  }
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  add_small_steps();
  scale_a_small_number();
  run_steps(*backend);
}
