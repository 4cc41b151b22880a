// Optimizer steps: against the CPU's.
#include "cuda_emulated/against_cpu.h"
#include "tensor/backends.h"
#include "tensor/update.h"

using namespace bertrand;
using namespace bertrand::testing;

namespace {

/// Masters, values and moments after three steps over segments of many chunks, one after the other.
std::vector<double> three_steps(DType dtype, bool trust_ratio, bool overflow, Backend& b) {
  constexpr Dim kCount = 40000;
  const DType wide = compute_type(dtype);
  const Tensor masters = noise({kCount}, wide, b, 1), m = ops::full({kCount}, 0, wide, b),
               v = ops::full({kCount}, 0, wide, b);
  const Shape segment{5000};
  const Dim without_weights = 30000, without_gradient = 35000;  // if there are no norms to divide
  ops::fill(masters.window(without_weights, segment), 0);
  const Tensor values = wide == dtype ? masters : ops::cast(masters, dtype);
  const std::vector<UpdateSegment> segments{
      {.begin = 0, .count = 20000, .weight_decay = 0.1, .trust_ratio = trust_ratio},
      {.begin = 20000, .count = 7},
      {.begin = 20016, .count = 9984, .trust_ratio = trust_ratio, .rate = 0.25},
      {.begin = without_weights, .count = 5000, .trust_ratio = trust_ratio},
      {.begin = without_gradient, .count = 5000, .trust_ratio = trust_ratio}};
  const Tensor state = ops::from_host(std::vector<double>{1024, 1, 0}, {3}, b);
  for (std::int64_t step = 1; step <= 3; ++step) {
    const Tensor gradients = ops::scale(noise({kCount}, dtype, b, 10 + static_cast<std::uint64_t>(step)), 64);
    ops::fill(gradients.window(without_gradient, segment), 0);
    if (overflow && step == 2) ops::fill(gradients.window(100, {1}), INFINITY);
    b.kernels()->update({masters, values, gradients, m, v},
                        {.learning_rate = 1e-2,
                         .bias_correction = true,
                         .step = step,
                         .clip_norm = 1,
                         .gradient_norm = ops::norm(gradients),
                         .loss_scale = {.state = state, .growth_interval = 2}},
                        segments);
  }
  std::vector<double> all;
  for (const Tensor& part : {masters, values, m, v, state})
    for (const double x : ops::to_host<double>(part)) all.push_back(x);
  return all;
}

}  // namespace

TEST_CASE("optimizer steps equal the CPU's: AdamW and LAMB, clipped, with a loss scale, and one step that overflows") {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  for (const DType dtype : kFloating)
    for (const bool trust_ratio : {false, true})
      for (const bool overflow : {false, true}) {
        CAPTURE(name_of(dtype));
        CAPTURE(trust_ratio);
        const auto got = three_steps(dtype, trust_ratio, overflow, *gpu),
                   expected = three_steps(dtype, trust_ratio, overflow, *cpu);
        const std::vector<double> states(got.end() - 3, got.end()), expected_states(expected.end() - 3, expected.end());
        CHECK(states == expected_states);
        CHECK(distance({got.begin(), got.end() - 3}, {expected.begin(), expected.end() - 3}) <=
              (dtype == DType::f64   ? 1e-12
               : dtype == DType::f32 ? 1e-6
                                     : 1e-4));
      }
}

TEST_CASE("an optimizer step over no segments moves nothing") {
  const auto gpu = emulated_gpu();
  const auto ones = [&] { return ops::full({8}, 1, DType::f32, *gpu); };
  const Tensor x = ones(), gradients = ones();
  gpu->kernels()->update({x, x, gradients, ones(), ones()}, {.step = 1, .gradient_norm = ops::norm(gradients)}, {});
  CHECK(ops::to_host<double>(x) == std::vector<double>(8, 1));
}
