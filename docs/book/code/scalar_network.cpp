// The first hour: a network of 13 weights learns "one or the other, but not both", number by number.
#include <cstdio>
#include <vector>

#include "scalar_engine.h"

using scalar::Value;

namespace {

/// Two inputs, three hidden neurons, one output.
struct Network {
  std::vector<Value> weights;

  Network() {
    unsigned seed = 1;  // numbers between −1 and 1 that anyone can make
    for (int i = 0; i < 13; ++i) weights.emplace_back(((seed = seed * 1664525u + 1013904223u) >> 8) / 8388608.0 - 1);
  }
  Value operator()(double x, double y) const {
    Value output = weights[12];
    for (std::size_t i = 0; i < 9; i += 3) {
      const Value hidden = tanh(weights[i] * x + weights[i + 1] * y + weights[i + 2]);
      output = output + hidden * weights[9 + i / 3];
    }
    return output;
  }
};

struct Example {
  double x, y, target;
};

}  // namespace

int main() {
  Network network;
  const std::vector<Example> examples{{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}};
  for (int step = 0; step <= 400; ++step) {
    Value loss = 0;
    for (const Example& e : examples) {
      const Value error = network(e.x, e.y) - e.target;
      loss = loss + error * error;
    }
    if (step % 100 == 0) std::printf("step %3d  loss %.4f\n", step, loss.value());
    for (Value& w : network.weights) w.zero_gradient();
    loss.backward();
    for (Value& w : network.weights) w = Value(w.value() - 0.1 * w.gradient());
  }
  for (const Example& e : examples) std::printf("%g or %g: %.2f\n", e.x, e.y, network(e.x, e.y).value());
}
