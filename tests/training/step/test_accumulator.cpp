#include <doctest/doctest.h>

#include "distributed/reducer.h"
#include "tensor/backends.h"
#include "training/step/accumulator.h"

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

/// Adds up what the accumulator leaves, as a step does.
Tensor total_of(GradientAccumulator& accumulator, const Tensor& gradients, std::int64_t micro_batches) {
  distributed::SoloCollective solo(gradients.backend());
  distributed::Reducer reducer(solo);
  std::vector<distributed::Addend> addends = accumulator.last(gradients);
  const Tensor sum = addends.back().values;
  reducer.begin({.parts = micro_batches, .addends = std::move(addends), .sum = sum, .last = gradients});
  reducer.finish();
  return sum;
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
      const auto micro_batches = static_cast<std::int64_t>(count);
      accumulator.begin(0, micro_batches);
      for (std::size_t i = 0; i < count; ++i) {
        backend->fill(gradients, values[i]);
        if (i + 1 < count) accumulator.add(gradients);
      }
      CHECK(total_of(accumulator, gradients, micro_batches).same_memory(gradients));
      CHECK(ops::to_host<float>(gradients)[5] == tree(values, 0, count));
    }
  }
}

TEST_CASE("gradients of half types are summed in f32, by the same tree, and a single one is left as it is") {
  const auto backend = open_cpu({.threads = 1});
  for (const DType half : {DType::bf16, DType::f16})
    for (std::size_t count = 1; count <= 17; ++count) {
      std::vector<float> values;  // numbers that the types hold, whose sums they do not
      for (std::size_t i = 0; i < count; ++i) values.push_back(1.0f + 0x1p-7f * static_cast<float>(i * 5 % 128));
      GradientAccumulator accumulator;
      for (int round = 0; round < 2; ++round) {
        const std::size_t before = backend->memory().in_use;
        const Tensor gradients({1024}, half, *backend);
        const auto micro_batches = static_cast<std::int64_t>(count);
        accumulator.begin(0, micro_batches);
        for (std::size_t i = 0; i < count; ++i) {
          backend->fill(gradients, values[i]);
          if (i + 1 < count) accumulator.add(gradients);
        }
        const Tensor total = total_of(accumulator, gradients, micro_batches);
        CHECK(total.dtype() == (count == 1 ? half : DType::f32));
        CHECK(ops::to_host<float>(total)[5] == tree(values, 0, count));
        const std::size_t buffers =
            count == 1 ? 0
                       : static_cast<std::size_t>(GradientAccumulator::buffers(0, micro_batches, micro_batches)) + 1;
        if (round == 0) CHECK(backend->memory().in_use - before == 1024 * 2 + buffers * 1024 * 4);
      }
    }
}

TEST_CASE("one micro-batch needs no buffer, and n need one for every digit 1 of the numbers below n") {
  CHECK(GradientAccumulator::buffers(0, 1, 1) == 0);
  CHECK(GradientAccumulator::buffers(0, 2, 2) == 1);
  CHECK(GradientAccumulator::buffers(0, 3, 3) == 1);
  CHECK(GradientAccumulator::buffers(0, 4, 4) == 2);
  CHECK(GradientAccumulator::buffers(0, 5, 5) == 2);
  CHECK(GradientAccumulator::buffers(0, 8, 8) == 3);
  CHECK(GradientAccumulator::buffers(3, 2, 5) == 1);  // 3 | 4: neither is the other's sibling
  CHECK(GradientAccumulator::buffers(2, 1, 3) == 0);
}
