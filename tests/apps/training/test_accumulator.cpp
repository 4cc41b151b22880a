#include <doctest/doctest.h>

#include "apps/training/accumulator.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

/// The sum of values [first, first + count) as the tree defines it: halves that are powers of two on the left.
float tree(const std::vector<float>& values, std::size_t first, std::size_t count) {
  if (count == 1) return values[first];
  std::size_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree(values, first, left) + tree(values, first + left, count - left);
}

}  // namespace

TEST_CASE("gradients of micro-batches are summed in the fixed pairwise tree") {
  const auto backend = open_cpu({.threads = 1});
  for (std::size_t count = 1; count <= 17; ++count) {
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(1.0f / static_cast<float>(3 + 7 * i));
    GradientAccumulator accumulator;
    for (int round = 0; round < 2; ++round) {  // the buffers are used again
      const Tensor gradients({16}, DType::f32, *backend);
      for (std::size_t i = 0; i < count; ++i) {
        backend->fill(gradients, values[i]);
        if (i + 1 < count)
          accumulator.add(gradients);
        else
          accumulator.finish(gradients);
      }
      CHECK(ops::to_host<float>(gradients)[5] == tree(values, 0, count));
    }
  }
}

TEST_CASE("one micro-batch needs no buffer, and n need as many as the counter has digits") {
  CHECK(GradientAccumulator::buffers(1) == 0);
  CHECK(GradientAccumulator::buffers(2) == 1);
  CHECK(GradientAccumulator::buffers(3) == 2);
  CHECK(GradientAccumulator::buffers(4) == 2);
  CHECK(GradientAccumulator::buffers(5) == 3);
}

TEST_CASE("losses are summed in the same tree as gradients") {
  std::vector<double> values;
  CHECK(pairwise_sum(values) == 0);
  for (int i = 0; i < 7; ++i) values.push_back(1.0 / (3 + i));
  const auto& v = values;
  CHECK(pairwise_sum(v) == ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]));
}
