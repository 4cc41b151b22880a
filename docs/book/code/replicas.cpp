// Five micro-batches on one, two and three replicas: the gradient has the same bits.
#include <cstdio>
#include <memory>
#include <vector>

#include "autograd/operators.h"
#include "distributed/replica_group.h"
#include "nn/layers.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

constexpr std::uint64_t kSeed = 7;
constexpr Dim kParts = 5, kRows = 8, kWidth = 16;

/// Micro-batch number `part`: a function of its number, so that any replica can make it.
Tensor inputs(Dim part, Backend& backend) {
  Random random(mix(kSeed, static_cast<std::uint64_t>(part)));
  std::vector<float> values(kRows * kWidth);
  for (float& v : values) v = static_cast<float>(random.normal());
  return ops::from_host(values, {kRows, kWidth}, backend);
}

/// What each replica does: its share of the parts, then the sum of all.
std::vector<float> gradient_of_step(const distributed::Replica& replica) {
  Backend& backend = replica.backend();
  nn::Linear layer({}, {.in_features = kWidth, .out_features = kWidth, .initializer_range = 0.1});
  nn::ParameterSet parameters(layer, backend);  // values follow from (seed, name): the same on every replica

  const auto share = distributed::share_of(kParts, replica.rank(), replica.size());
  std::vector<distributed::Addend> parts;
  for (Dim part = share.first; part < share.end(); ++part) {
    parameters.zero_gradients();
    const Variable y = layer(Variable(inputs(part, backend)));
    backward(mean(y * y));
    parts.push_back({.first = part, .count = 1, .values = ops::copy(parameters.gradients())});
  }
  const auto add = [](const Tensor& left, const Tensor& right) { ops::add_into(left, right); };
  const std::vector<distributed::Addend> nodes = distributed::add_siblings(parts, kParts, add);
  const Tensor sum(parameters.gradients().shape(), DType::f32, backend);
  replica.collective().all_reduce_sum(nodes, kParts, sum);
  return ops::to_host<float>(sum);
}

std::vector<float> on_replicas(int count) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) backends.push_back(open_cpu({.threads = 1}));
  std::vector<float> gradient;
  distributed::ReplicaGroup(std::move(backends)).run([&](const distributed::Replica& replica) {
    std::vector<float> mine = gradient_of_step(replica);
    if (replica.first()) gradient = std::move(mine);
  });
  return gradient;
}

}  // namespace

int main() {
  const std::vector<float> one = on_replicas(1);
  for (const int count : {2, 3, 5})
    std::printf("%d replicas: the bits of one: %s\n", count, on_replicas(count) == one ? "yes" : "no");
}
