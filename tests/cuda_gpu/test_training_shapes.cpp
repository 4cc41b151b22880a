// Ops in the shapes that BERT-base and -large train with, in half types: for which the library picks other algorithms
// than for the op table's small rows, and rows take more than a block.
#include <doctest/doctest.h>

#include "cuda_gpu/gpu_or_skip.h"
#include "support/op_checks.h"

using namespace bertrand;
using namespace bertrand::testing;

namespace {

void check_half_types(const std::vector<OpCase>& cases, Backend& gpu) {
  const auto cpu = open_cpu();
  for (const OpCase& c : cases) {
    check_against_backend(c, DType::bf16, {.result = 1e-2, .gradient = 2e-2}, gpu, *cpu);
    check_against_backend(c, DType::f16, {.result = 2e-3, .gradient = 3e-3}, gpu, *cpu);
  }
}

}  // namespace

TEST_CASE("ops of the sizes of training equal the CPU's in bf16 and f16 on the GPU") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  for (const auto& family : {large_product_cases, large_normalization_cases, large_attention_cases, large_loss_cases})
    check_half_types(family(), *gpu);
}

TEST_CASE("products of the sizes of training equal the CPU's by the algorithms that are measured as the fastest") {
  const auto gpu = gpu_or_skip({.measured_products = true});
  if (!gpu) return;
  check_half_types(large_product_cases(), *gpu);
}

TEST_CASE("ops of the sizes of training have the same bits twice on the GPU") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const auto& family : {large_product_cases, large_normalization_cases, large_attention_cases, large_loss_cases})
      for (const OpCase& c : family()) check_same_bits_twice(c, dtype, *gpu);
}
