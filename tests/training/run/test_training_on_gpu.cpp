// Whole models on the emulated GPU: PyTorch's figures, steps of training, and memory that runs out anywhere in one.
#include <doctest/doctest.h>

#include <cmath>

#include "bert/network/golden_pretraining.h"
#include "cuda_emulated/emulated_gpu.h"
#include "support/small_training.h"
#include "support/worst.h"

using namespace bertrand;
using namespace bertrand::testing;
using support::SmallTraining;

TEST_CASE("the golden model on the emulated GPU has PyTorch's outputs, losses and gradients in f32, bf16 and f16") {
  const auto gpu = emulated_gpu();
  for (const char* folder : golden::kFolders) {
    if (!golden::present(folder)) return;
    CAPTURE(folder);
    const golden::Case golden(folder);
    golden::check_outputs(golden, DType::f32, 2e-5, *gpu);
    CHECK(golden::gradient_error(golden, DType::f32, *gpu) <= 1e-5);
    golden::check_half_types(golden, *gpu);
  }
}

TEST_CASE("twenty steps in f32, bf16 and f16 stay together, and f32 with the CPU's") {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  const std::vector<double> expected = SmallTraining(DType::f32, *cpu).losses(20);
  CHECK(expected.back() < 0.8 * expected.front());
  for (const auto& [dtype, bound] : {std::pair{DType::f32, 1e-5}, {DType::bf16, 2e-2}, {DType::f16, 1e-2}}) {
    const std::vector<double> got = SmallTraining(dtype, *gpu).losses(20);
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      worst = support::worst_of(worst, std::abs(got[i] - expected[i]) / expected[i]);
    INFO(name_of(dtype) << ": at most " << worst << " apart");
    CHECK(worst <= bound);
  }
}

TEST_CASE("training has the same bits twice and in any order of blocks and threads") {
  const auto gpu = emulated_gpu();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const auto after_three_steps = [&] {
      SmallTraining training(dtype, *gpu);
      training.losses(3);
      return training.masters();
    };
    const std::vector<double> once = after_three_steps();
    CHECK(after_three_steps() == once);
    for (const std::uint64_t seed : {1, 2}) {
      cuda::emulation::shuffle(seed);
      CHECK(after_three_steps() == once);
    }
    cuda::emulation::shuffle(0);
  }
}

TEST_CASE(
    "memory that runs out at any allocation of a step is an error, leaks nothing, and the next step is as any other") {
  const support::TrainingSizes sizes{.layers = 1, .hidden = 16, .lengths = {5, 3}};
  for (const DType dtype : {DType::f32, DType::f16}) {
    const auto gpu = emulated_gpu();
    SmallTraining training(dtype, *gpu, sizes);
    const std::vector<double> beginning = training.masters();
    const std::size_t in_use = cuda::emulation::counts().bytes_in_use;
    int failed = 0;
    for (bool finished = false; !finished;) {
      cuda::emulation::fail_allocation(failed + 1);
      try {
        const Tensor loss = training.step(0);
        cuda::emulation::fail_allocation(0);
        CHECK(std::isfinite(ops::item(loss)));
        finished = true;
      } catch (const Error& error) {
        ++failed;
        CAPTURE(failed);
        const std::string message = error.what();
        CHECK(error.failure() == Failure::memory);
        CHECK(message.find("out of memory") != std::string::npos);
        CHECK(message.find('\n') == std::string::npos);
        if (failed <= 80) CHECK(training.masters() == beginning);        // the last ones come after the update
        CHECK(cuda::emulation::counts().bytes_in_use <= in_use + 4096);  // the optimizer keeps its table
      }
    }
    MESSAGE(name_of(dtype) << ": " << failed << " allocations in a step");
    CHECK(failed > 50);
  }
}
