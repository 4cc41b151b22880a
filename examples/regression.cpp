// A straight line through points: gradient descent in one line, save, load.
//
// What to see: the flat tensors of a ParameterSet are what an optimizer works on, so that a step of SGD is
// values += −rate · gradients; a model is saved and loaded by the names of its parameters.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "autograd/operators.h"
#include "nn/weights.h"
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

  const std::filesystem::path file = std::filesystem::temp_directory_path() / "bertrand-line.safetensors";
  nn::save(parameters, file);
  Line loaded;
  nn::ParameterSet read(loaded, *backend, {.initialize = false, .gradients = false});  // it is not trained
  std::printf("%s\n", nn::load(read, file).text().c_str());
  std::filesystem::remove(file);
  const bool same = ops::to_host<float>(read.values()) == ops::to_host<float>(parameters.values());
  return same && std::abs(ops::item(loaded.slope.value()) - 2) < 0.01 ? 0 : 1;
}
