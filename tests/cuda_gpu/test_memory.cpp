// Memory of a GPU: how much steps take, and what happens if there is none left.
#include <doctest/doctest.h>

#include <cmath>

#include "cuda_gpu/gpu_or_skip.h"
#include "support/small_pretraining.h"
#include "support/small_training.h"

using namespace bertrand;
using namespace bertrand::testing;
using support::SmallTraining;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Takes all memory that there is in pieces of so many bytes.
void fill(std::vector<Tensor>& taken, std::size_t bytes, Backend& gpu) {
  const auto take_all = [&] {
    for (int i = 0; i < 10'000; ++i) taken.emplace_back(Shape{static_cast<Dim>(bytes)}, DType::u8, gpu);
  };
  CHECK_THROWS_WITH_AS(take_all(), doctest::Contains("out of memory"), Error);
}

}  // namespace

TEST_CASE("the most memory that steps of BERT-base take on the GPU is within a twentieth of what the plan predicts") {
  struct Run {
    DType dtype;
    std::int64_t micro_batch;
  };
  for (const auto& [dtype, micro_batch] : {Run{DType::f32, 8}, {DType::bf16, 3}, {DType::f16, 8}}) {
    const auto gpu = gpu_or_skip();  // a new one: its peak is never forgotten
    if (!gpu) return;
    const distributed::Replica self(*gpu);
    // What the library of products works in, up to 32 MiB, is not in the plan, and small beside this model.
    support::SmallPretraining objective(bert::Config::preset("base"), self);
    training::Settings settings = training::pretraining_defaults();
    settings.precision = {dtype};
    settings.batch_size = 8;
    settings.micro_batch_size = micro_batch;
    settings.steps = 3;
    const training::Plan plan = training::make_plan(settings, objective, self);
    const auto predicted = static_cast<double>(plan.memory.total());
    const auto measured = static_cast<double>(support::peak_of_steps(settings, plan, objective, self));
    INFO(name_of(dtype) << ", micro-batches of " << micro_batch << ": " << predicted << " and " << measured);
    CHECK(predicted == doctest::Approx(measured).epsilon(0.05));
  }
}

TEST_CASE("a GPU that is full says so in one line and goes on when memory is freed") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const std::size_t before = gpu->memory().in_use;
  std::vector<Tensor> taken;
  fill(taken, 1024 * kMiB, *gpu);
  taken.clear();
  CHECK(gpu->memory().in_use == before);
  SmallTraining training(DType::bf16, *gpu);
  CHECK(std::isfinite(ops::item(training.step(0))));
}

TEST_CASE("memory that runs out at one place of a step after another is an error, leaks nothing and changes no bit") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const support::TrainingSizes sizes{.lengths = {128, 100}, .preset = "tiny"};
  // This step loads the kernels too, which takes memory that the pool is not asked for.
  const double expected = ops::item(SmallTraining(DType::bf16, *gpu, sizes).step(0));
  SmallTraining training(DType::bf16, *gpu, sizes);
  const std::size_t before = gpu->memory().in_use;
  std::vector<Tensor> taken;
  fill(taken, 1024 * kMiB, *gpu);
  fill(taken, kMiB, *gpu);
  int failed = 0;
  for (bool finished = false; !finished && !taken.empty();) {
    try {
      const double loss = ops::item(training.step(0));
      finished = true;
      CHECK(loss == expected);
    } catch (const Error& error) {
      ++failed;
      const std::string message = error.what();
      CHECK(error.failure() == Failure::memory);
      CHECK(message.find("out of memory") != std::string::npos);
      CHECK(message.find('\n') == std::string::npos);
      taken.pop_back();  // so the next one comes a little further
    }
  }
  MESSAGE(failed << " steps failed");
  CHECK(failed > 3);
  CHECK(!taken.empty());
  taken.clear();
  CHECK(gpu->memory().in_use <= before + 4096);  // the optimizer keeps its table
}
