// Two replicas on two threads train to the same bits as one.
//
// What to see: a step is cut into micro-batches; each replica computes the gradients of its share; GradientSum adds all
// of them in a tree that depends on the number of micro-batches alone. So who computed which does not matter.
#include <cstdio>
#include <memory>
#include <vector>

#include "autograd/operators.h"
#include "distributed/gradient_sum.h"
#include "distributed/replica_group.h"
#include "nn/layers.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

constexpr int kSteps = 20, kMicroBatches = 5;
constexpr Dim kRows = 16, kWidth = 8;

/// Rows that follow from the number of the micro-batch, so that any replica can make them.
Variable inputs(std::int64_t number, Backend& backend) {
  Random random(mix(7, static_cast<std::uint64_t>(number)));
  std::vector<float> values(kRows * kWidth);
  for (float& v : values) v = static_cast<float>(random.normal());
  return Variable(ops::from_host(values, {kRows, kWidth}, backend));
}

/// The parameters after training on this many replicas, each in a thread of its own.
std::vector<float> train(int replicas) {
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < replicas; ++i) backends.push_back(open_cpu({.threads = 1}));
  std::vector<float> trained;
  distributed::ReplicaGroup(std::move(backends)).run([&](const distributed::Replica& self) {
    nn::Linear layer({}, {.in_features = kWidth, .out_features = kWidth});
    nn::ParameterSet parameters(layer, self.backend());  // every replica draws the same initial values
    distributed::GradientSum gradients(self.collective());
    const distributed::Share mine = distributed::share_of(kMicroBatches, self.rank(), self.size());
    for (int step = 0; step < kSteps; ++step) {
      gradients.begin(parameters.gradients(), mine, kMicroBatches);
      for (std::int64_t i = mine.first; i < mine.end(); ++i) {
        const Variable x = inputs(step * kMicroBatches + i, self.backend()), error = layer(x) - tanh(x);
        parameters.zero_gradients();
        backward(mean(error * error));
        gradients.add();
      }
      ops::add_into(ops::scale(gradients.finish(), -0.5), parameters.values());  // the same step on every replica
    }
    if (self.first()) trained = ops::to_host<float>(parameters.values());
  });
  return trained;
}

}  // namespace

int main() {
  const std::vector<float> one = train(1);
  bool all_same = true;
  for (const int replicas : {2, 3}) {
    const bool same = train(replicas) == one;
    std::printf("%d replicas, %d steps: the bits of one replica: %s\n", replicas, kSteps, same ? "yes" : "no");
    all_same = all_same && same;
  }
  return all_same ? 0 : 1;
}
