// The host runs ahead of the GPU: nothing in a step waits for it.
#include <doctest/doctest.h>

#include "cuda_emulated/emulated_gpu.h"
#include "support/small_pretraining.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

const bert::Config kConfig{.vocab_size = 40,
                           .hidden_size = 16,
                           .num_hidden_layers = 1,
                           .num_attention_heads = 2,
                           .intermediate_size = 32,
                           .max_position_embeddings = 8};

struct Course {
  std::vector<double> figures;
  std::vector<float> values;
  std::int64_t waits = 0;  ///< for the GPU, between the first step and the first look at one
  bool operator==(const Course& other) const { return figures == other.figures && values == other.values; }
};

/// Three steps of two micro-batches, the host `ahead` steps ahead of what it has looked at.
Course train(DType dtype, optim::Method method, std::size_t ahead) {
  const auto gpu = testing::emulated_gpu();
  const distributed::Replica self(*gpu);
  support::SmallPretraining objective(kConfig, self);
  nn::ParameterSet parameters(objective.model(), *gpu, {.dtype = dtype});
  optim::Optimizer optimizer(parameters, {.method = method});
  Stepper stepper({objective, parameters, optimizer, self}, {.seed = 1, .micro_batch_size = 2});
  Course course;
  std::vector<StartedStep> started;
  const auto finish_first = [&] {
    const StepResult result = stepper.finish(started.front());
    started.erase(started.begin());
    for (const Metric& loss : result.losses) course.figures.push_back(loss.value);
    course.figures.push_back(result.grad_norm);
  };
  const std::int64_t waits = cuda::emulation::synchronizations();
  for (std::int64_t i = 0; i < 3; ++i) {
    started.push_back(stepper.start({.epoch = 0, .numbers = {i, 5 * i + 1, 2 * i + 15}}, i + 1, 1e-3));
    if (started.size() > ahead) finish_first();
  }
  while (!started.empty()) finish_first();
  course.waits = cuda::emulation::synchronizations() - waits;
  course.values = ops::to_host<float>(parameters.values());
  return course;
}

}  // namespace

TEST_CASE(
    "steps are asked for, and looked at, without waiting for all that the GPU has to do, and looking late changes no "
    "bit") {
  for (const auto& [dtype, method] : {std::pair{DType::f32, optim::Method::lamb}, {DType::f16, optim::Method::adamw}}) {
    CAPTURE(name_of(dtype));
    const Course at_once = train(dtype, method, 0), at_the_end = train(dtype, method, 3);
    CHECK(at_once.waits == 0);
    CHECK(at_the_end.waits == 0);
    CHECK(at_once == at_the_end);
    CHECK(at_once.figures.size() == 12);
    CHECK(at_once.figures.front() > 1);
  }
}

TEST_CASE("the memory of a step on a GPU is what the plan predicts") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CAPTURE(name_of(dtype));
    const auto gpu = testing::emulated_gpu();
    const distributed::Replica self(*gpu);
    support::SmallPretraining objective(kConfig, self);
    Settings settings = pretraining_defaults();
    settings.precision = {dtype};
    settings.batch_size = 6;
    settings.micro_batch_size = 6;
    settings.steps = 4;
    if (dtype == DType::bf16) settings.optimizer.method = optim::Method::lamb;
    const Plan plan = make_plan(settings, objective, self);
    const std::size_t peak = support::peak_of_steps(settings, plan, objective, self);
    CHECK(static_cast<double>(plan.memory.total()) == doctest::Approx(static_cast<double>(peak)).epsilon(0.05));
  }
}
