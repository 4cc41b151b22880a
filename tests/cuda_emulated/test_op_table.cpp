// The op table on the CUDA backend with its kernels emulated on the processor. Results are held to the formulas,
// gradients to differences, and both to the CPU, so that a bug of the CPU is not blamed on a kernel here.
#include <doctest/doctest.h>

#include <set>

#include "cuda_emulated/emulated_gpu.h"
#include "support/op_checks.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::testing;

TEST_CASE("every op on the emulated GPU equals its formula and its meaning in plain ops") {
  const auto gpu = emulated_gpu();
  for (const OpCase& c : op_cases()) check_definition(c, *gpu);
}

// One row of each op: in all rows the gradients are the CPU's (below), of which every entry has its difference.
TEST_CASE("every op on the emulated GPU has the gradients that central differences say") {
  const auto gpu = emulated_gpu();
  std::set<std::string> seen;
  for (const OpCase& c : op_cases())
    if (seen.insert(c.op).second) check_directions(c, *gpu);
}

TEST_CASE("every op on the emulated GPU equals the CPU forward and backward") {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  for (const OpCase& c : op_cases())
    check_against_backend(c, DType::f64, {.result = 1e-13, .gradient = 1e-12}, *gpu, *cpu);
}

TEST_CASE("every op on the emulated GPU in f32 and half types stays as close to f64 as their digits allow") {
  const auto gpu = emulated_gpu();
  for (const OpCase& c : op_cases()) {
    check_against_f64(c, DType::bf16, {.result = 1e-2, .gradient = 2e-2}, *gpu);
#ifndef __SANITIZE_ADDRESS__  // f32 touches the memory that f64 touches in other tests, and f16 what bf16 does
    check_against_f64(c, DType::f32, {.result = 2e-6, .gradient = 3e-6}, *gpu);
    check_against_f64(c, DType::f16, {.result = 2e-3, .gradient = 3e-3}, *gpu);
#endif
  }
}

TEST_CASE("every op on the emulated GPU leaves its inputs alone and gives only what is wanted and adds to the rest") {
  const auto gpu = emulated_gpu();
  for (const OpCase& c : op_cases()) check_in_graph(c, *gpu);
}

TEST_CASE("every op on the emulated GPU has the same bits in any order of blocks and threads") {
  const auto gpu = emulated_gpu();
  for (const OpCase& c : op_cases()) {
    const Arrays natural = run_both_ways(c, DType::f32, *gpu);
    cuda::emulation::shuffle(1);
    CHECK_MESSAGE(run_both_ways(c, DType::f32, *gpu) == natural, c.name());
    cuda::emulation::shuffle(0);
  }
}
