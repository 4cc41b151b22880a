// The graph of a loss as a picture: build/bin/example_graph | dot -Tsvg > graph.svg (dot is in Debian's graphviz).
//
// What to see: the network is two layers, but the graph knows ops only. Inputs and labels want no gradient, so they are
// constants. docs/pictures/graph_of_a_loss.svg is this graph.
#include <cstdio>
#include <vector>

#include "autograd/ops.h"
#include "nn/layers.h"
#include "nn/leaf_names.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

struct Classifier : nn::Module {
  Classifier()
      : hidden(in("hidden"), {.in_features = 2, .out_features = 32}),
        output(in("output"), {.in_features = 32, .out_features = 2}) {}
  Variable operator()(const Variable& x) const { return output(tanh(hidden(x))); }

  nn::Linear hidden, output;
};

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  Classifier model;
  const nn::ParameterSet parameters(model, *backend);

  const Variable x(ops::full({4, 2}, 1, DType::f32, *backend));
  const Tensor labels = ops::from_host(std::vector<std::int32_t>{0, 1, 1, 0}, {4}, *backend);
  const Variable loss = softmax_cross_entropy(model(x), labels, /*denominator=*/4);
  std::printf("%s", graph(loss, nn::leaf_names(model)).c_str());
}
