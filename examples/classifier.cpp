// A small classifier on points: two layers learn which points of a square lie inside a circle.
//
// What to see: a Module declares parameters, a ParameterSet gives them memory, an Optimizer moves them. The loop that
// joins the three is five lines. SGD is the simplest method; .method = optim::Method::adamw needs fewer steps.
#include <cmath>
#include <cstdio>
#include <vector>

#include "nn/layers.h"
#include "optim/optimizer.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

constexpr Dim kPoints = 400;

struct Classifier : nn::Module {
  Classifier()
      // in("hidden"): below this module, under that name; its parameters are hidden.weight and hidden.bias
      : hidden(in("hidden"), {.in_features = 2, .out_features = 32, .initializer_range = 1.0}),
        output(in("output"), {.in_features = 32, .out_features = 2, .initializer_range = 0.3}) {}
  Variable operator()(const Variable& x) const { return output(tanh(hidden(x))); }

  nn::Linear hidden;  // [32, 2]
  nn::Linear output;  // [2, 32]
};

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  Random random(7);
  std::vector<float> points;
  std::vector<std::int32_t> inside;
  for (Dim i = 0; i < kPoints; ++i) {
    const double x = 2 * random.uniform() - 1, y = 2 * random.uniform() - 1;
    points.insert(points.end(), {static_cast<float>(x), static_cast<float>(y)});
    inside.push_back(x * x + y * y < 0.5 ? 1 : 0);
  }
  const Variable x(ops::from_host(points, {kPoints, 2}, *backend));
  const Tensor labels = ops::from_host(inside, {kPoints}, *backend);

  Classifier model;
  nn::ParameterSet parameters(model, *backend);
  optim::Optimizer optimizer(parameters, {.method = optim::Method::sgd, .weight_decay = 0});

  double correct = 0;
  for (int step = 0; step <= 300; ++step) {
    parameters.zero_gradients();
    const Variable logits = model(x);
    const Variable loss = softmax_cross_entropy(logits, labels, kPoints);
    backward(loss);
    optimizer.step(0.5);

    if (step % 100 != 0) continue;
    const auto guesses = ops::to_host<std::int32_t>(ops::argmax(logits.value()));
    correct = 0;
    for (std::size_t i = 0; i < guesses.size(); ++i) correct += guesses[i] == inside[i];
    std::printf("step %3d  loss %.4f  accuracy %.3f\n", step, ops::item(loss.value()), correct / kPoints);
  }
  return correct / kPoints > 0.95 ? 0 : 1;
}
