// The kernels of the emulated GPU beside those of the CPU.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "cuda_emulated/emulated_gpu.h"
#include "tensor/ops.h"
#include "tensor/random.h"

namespace bertrand::testing {

inline Tensor noise(const Shape& shape, DType dtype, Backend& backend, std::uint64_t key) {
  Random random(key);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (double& v : values) v = 2 * random.uniform() - 1;
  return ops::cast(ops::from_host(values, shape, backend), dtype);
}

/// ‖a − b‖ / ‖b‖
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

inline constexpr DType kFloating[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

/// One rounding of the last place; a sum of many may be off by a few in f32.
inline double tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 3e-6 : dtype == DType::f16 ? 6e-4 : 5e-3;
}

/// compute(backend) on the GPU and on the CPU.
template <class Compute>
void check_same(double allowed, const Compute& compute) {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  CHECK(distance(ops::to_host<double>(compute(*gpu)), ops::to_host<double>(compute(*cpu))) <= allowed);
}

}  // namespace bertrand::testing
