// CUDA graphs on a real GPU: captured work beside plain work.
#include <doctest/doctest.h>

#include <limits>
#include <optional>

#include "cuda_gpu/gpu_or_skip.h"
#include "support/small_forward.h"
#include "tensor/ops.h"

using namespace bertrand;
using namespace bertrand::testing;
using support::sequences;

namespace {

/// Takes memory of many sizes, writes NaN to all of it, and frees it.
void dirty(Backend& gpu) {
  std::vector<Tensor> taken;
  for (Dim bytes = 1024; bytes <= Dim{1} << 26; bytes *= 2)
    for (int i = 0; i < 3; ++i)
      taken.push_back(ops::full({bytes / 4}, std::numeric_limits<double>::quiet_NaN(), DType::f32, gpu));
}

}  // namespace

TEST_CASE("captured inference on the GPU has the bits of plain inference after other work took and freed memory") {
  for (const bool measured : {false, true})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const auto gpu = gpu_or_skip({.measured_products = measured});
      if (!gpu) return;
      const support::SmallForward small(*gpu, dtype, {.layers = 4, .hidden = 256});
      std::optional<inference::Forward> forward(small.forward());
      const std::size_t before = gpu->memory().in_use;
      for (std::uint64_t round = 1; round <= 6; ++round)
        for (const std::vector<std::size_t>& lengths :
             {std::vector<std::size_t>{128}, {77, 9}, {300, 200, 100}, {1}, {512, 512}}) {
          CAPTURE(measured);
          CAPTURE(name_of(dtype));
          CAPTURE(round);
          CAPTURE(lengths);
          const auto batch = sequences(lengths, round);
          const std::vector<float> expected = small.expected(batch);
          dirty(*gpu);
          const int runs = small.runs;
          const Tensor outputs = (*forward)(batch);
          dirty(*gpu);
          CHECK((small.runs == runs) == (round > 3));
          CHECK(ops::to_host<float>(outputs) == expected);
        }
      forward.reset();
      CHECK(gpu->memory().in_use == before);
    }
}

TEST_CASE("an index out of range on the GPU is refused after captured work, and only then") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const std::vector<float> values = {0, 1, 2, 3, 4, 5};
  const Tensor table = ops::from_host(values, {3, 2}, *gpu), rows({2}, DType::i32, *gpu), out({2, 2}, DType::f32, *gpu);
  const auto set = [&](const std::vector<std::int32_t>& numbers) { gpu->upload(numbers.data(), rows); };
  set({0, 1});
  const auto captured = gpu->capture([&] { ops::copy_into(ops::gather(table, rows), out); });
  REQUIRE(captured);
  for (int i = 0; i < 3; ++i) {
    set({2, 3});
    captured->run();
    CHECK_THROWS_WITH_AS(ops::to_host<float>(out), "gather: row number 1 is 3, expected 0 to 2", Error);
    set({2, 0});
    captured->run();
    CHECK(ops::to_host<float>(out) == std::vector<float>{4, 5, 0, 1});
  }
}

TEST_CASE("work that cannot be captured on the GPU leaves it as it was") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const Tensor x = ops::full({64, 64}, 0.5, DType::bf16, *gpu), out({64, 64}, DType::bf16, *gpu);
  const std::size_t before = gpu->memory().in_use;
  int calls = 0;
  CHECK_THROWS_AS(gpu->capture([&] {
    const Tensor y = ops::matmul(x, x);
    if (++calls == 2) gpu->synchronize();
    ops::copy_into(y, out);
  }),
                  Error);
  CHECK(gpu->memory().in_use == before);
  const auto captured = gpu->capture([&] { ops::copy_into(ops::matmul(x, x), out); });
  REQUIRE(captured);
  ops::fill(out, 0);
  captured->run();
  CHECK(ops::to_host<double>(out) == std::vector<double>(64 * 64, 16));
}
