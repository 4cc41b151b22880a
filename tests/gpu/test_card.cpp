// The op table on a real card. Where there is none every test says so and passes.
#include <doctest/doctest.h>

#include "support/op_checks.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::testing;

namespace {

std::unique_ptr<Backend> card_or_skip() {
  try {
    return open_cuda();
  } catch (const Error& error) {
    MESSAGE("SKIPPED: " << error.what());
    return nullptr;
  }
}

}  // namespace

TEST_CASE("every op on the card equals the CPU in every type, forward and backward") {
  const auto card = card_or_skip();
  if (!card) return;
  const auto cpu = open_cpu();
  for (const OpCase& c : op_cases()) {
    check_against_backend(c, DType::f64, {.result = 1e-13, .gradient = 1e-12}, *card, *cpu);
    check_against_backend(c, DType::f32, {.result = 3e-6, .gradient = 5e-6}, *card, *cpu);
    check_against_backend(c, DType::bf16, {.result = 1e-2, .gradient = 2e-2}, *card, *cpu);
    check_against_backend(c, DType::f16, {.result = 2e-3, .gradient = 3e-3}, *card, *cpu);
  }
}

TEST_CASE("every op on the card has the same bits twice") {
  const auto card = card_or_skip();
  if (!card) return;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16})
    for (const OpCase& c : op_cases()) check_same_bits_twice(c, dtype, *card);
}

TEST_CASE("every op on the card leaves its inputs alone, gives only what is wanted, and adds to what is there") {
  const auto card = card_or_skip();
  if (!card) return;
  for (const OpCase& c : op_cases()) check_in_graph(c, *card);
}
