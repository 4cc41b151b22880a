// The op table and whole models on a real GPU. If there is none, every test says so and passes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "bert/network/golden_pretraining.h"
#include "cuda_gpu/gpu_or_skip.h"
#include "support/golden_trajectory.h"
#include "support/op_checks.h"
#include "support/small_training.h"
#include "support/worst.h"

using namespace bertrand;
using namespace bertrand::testing;
using support::SmallTraining;
using support::TrainingSizes;

namespace {

constexpr DType kFloating[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

}  // namespace

TEST_CASE("every op on the GPU equals the CPU in every type, forward and backward") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  MESSAGE(gpu->description());
  const auto cpu = open_cpu();
  for (const OpCase& c : op_cases()) {
    check_against_backend(c, DType::f64, {.result = 1e-13, .gradient = 1e-12}, *gpu, *cpu);
    check_against_backend(c, DType::f32, {.result = 3e-6, .gradient = 5e-6}, *gpu, *cpu);
    check_against_backend(c, DType::bf16, {.result = 1e-2, .gradient = 2e-2}, *gpu, *cpu);
    check_against_backend(c, DType::f16, {.result = 2e-3, .gradient = 3e-3}, *gpu, *cpu);
  }
}

TEST_CASE("every op on the GPU equals its formula and has the gradients that central differences say") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  for (const OpCase& c : op_cases()) {
    check_definition(c, *gpu);
    check_directions(c, *gpu);
  }
}

TEST_CASE("a product on the GPU adds up every term, whatever the depth") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  for (const DType dtype : kFloating)
    for (const Dim depth : {1, 31, 129, 1000, 4097, 12'345, 32'767}) {  // numbers of tokens, which blocks may share
      CAPTURE(name_of(dtype));
      CAPTURE(depth);
      const Tensor a = ops::full({depth, 72}, 1, dtype, *gpu), b = ops::full({depth, 40}, 0.5, dtype, *gpu);
      const Tensor expected = ops::full({72, 40}, 0.5 * static_cast<double>(depth), dtype, *gpu);  // rounded once
      CHECK(ops::to_host<double>(ops::matmul(a, b, {.transpose_a = true})) == ops::to_host<double>(expected));
    }
}

TEST_CASE("a product on the GPU adds up the last terms of a depth that blocks of threads cannot share evenly") {
  for (const bool measured : {false, true}) {
    const auto gpu = gpu_or_skip({.measured_products = measured});
    if (!gpu) return;
    for (const DType dtype : kFloating)
      for (const auto& [rows, columns] : {std::pair<Dim, Dim>{72, 40}, {768, 768}})
        for (const Dim even : {128, 512, 1024, 2048, 3072, 4096, 5120, 7680, 8192, 15360})
          for (const Dim rest : {1, 2, 3, 4, 5}) {
            INFO(name_of(dtype) << " [" << rows << ", " << columns << "] of depth " << even + rest
                                << (measured ? ", measured" : ""));
            // The other terms are 0: among thousands of ones a half type would round the last ones away.
            const Tensor a = ops::full({even + rest, rows}, 0, dtype, *gpu);
            const Tensor b = ops::full({even + rest, columns}, 1, dtype, *gpu);
            ops::fill(a.rows(even, even + rest), 1);
            const auto is_rest = [&](const Tensor& x) {
              return std::ranges::count(ops::to_host<double>(x), static_cast<double>(rest)) == x.elements();
            };
            CHECK(is_rest(ops::matmul(a, b, {.transpose_a = true})));
            CHECK(is_rest(ops::sum_to(a, {rows})));
          }
  }
}

TEST_CASE("every op on the GPU has the same bits twice") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  for (const DType dtype : kFloating)
    for (const OpCase& c : op_cases()) check_same_bits_twice(c, dtype, *gpu);
}

TEST_CASE("every op on the GPU leaves its inputs alone, gives only what is wanted, and adds to what is there") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  for (const OpCase& c : op_cases()) check_in_graph(c, *gpu);
}

TEST_CASE("every op on a GPU that rounds to TF32 and measures its products stays near the CPU") {
  const auto gpu = gpu_or_skip({.tf32 = true, .measured_products = true});
  if (!gpu) return;
  const auto cpu = open_cpu();
  for (const OpCase& c : op_cases()) {
    check_against_backend(c, DType::f32, {.result = 2e-3, .gradient = 4e-3}, *gpu, *cpu);
    check_against_backend(c, DType::bf16, {.result = 1e-2, .gradient = 2e-2}, *gpu, *cpu);
  }
}

TEST_CASE("the golden model on the GPU has PyTorch's outputs, losses and gradients in f32, bf16 and f16") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  for (const std::string folder : golden::kFolders) {
    if (!present_or_skip(golden::path_of(folder))) return;
    CAPTURE(folder);
    const golden::Case golden(folder);
    golden::check_outputs(golden, DType::f64, 1e-10, *gpu);
    golden::check_outputs(golden, DType::f32, 2e-5, *gpu);
    CHECK(golden::gradient_error(golden, DType::f32, *gpu) <= 1e-5);
    golden::check_half_types(golden, *gpu);
  }
}

TEST_CASE("pre-training on Google's records on the GPU gives PyTorch's losses, rates, norms and weights") {
  namespace trajectory = support::trajectory;
  if (!gpu_or_skip() || !present_or_skip(trajectory::kGolden)) return;
  const support::TemporaryDirectory directory;
  const support::Outcome outcome = trajectory::run(directory / "run", {"--device", "cuda"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  trajectory::check_steps(directory / "run/metrics.jsonl", 2e-6, 1e-5);
  const trajectory::Difference f32 = trajectory::weight_difference(directory / "run/model.safetensors");
  CHECK(f32.mean <= 3e-7);
  CHECK(f32.worst <= 3e-5);
}

TEST_CASE("200 steps in f32, bf16 and f16 stay together, and f32 with the CPU's") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const auto cpu = open_cpu();
  for (const TrainingSizes& sizes : {TrainingSizes{}, TrainingSizes{.lengths = {128, 77, 9}, .preset = "tiny"}}) {
    CAPTURE(sizes.preset);
    const std::vector<double> expected = SmallTraining(DType::f32, *cpu, sizes).losses(200);
    for (const auto& [dtype, bound] : {std::pair{DType::f32, 1e-3}, {DType::bf16, 5e-2}, {DType::f16, 3e-2}}) {
      const std::vector<double> got = SmallTraining(dtype, *gpu, sizes).losses(200);
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i)
        worst = support::worst_of(worst, std::abs(got[i] - expected[i]) / expected.front());
      INFO(name_of(dtype) << ": at most " << worst << " of the first loss apart");
      CHECK(worst <= bound);
    }
  }
}

TEST_CASE("training on the GPU has the same bits twice") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  for (const DType dtype : kFloating) {
    const auto after_steps = [&] {
      SmallTraining training(dtype, *gpu);
      training.losses(5);
      return training.masters();
    };
    CHECK(after_steps() == after_steps());
  }
}
