// Random numbers by counter: a draw follows from what it is for, not from when it is made.
#include <cstdio>
#include <vector>

#include "nn/layers.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

constexpr std::uint64_t kSeed = 42, kStep = 1000;

struct Two : nn::Module {
  Two() : a(in("a"), {2, 2}), b(in("b"), {2, 2}) {}
  nn::Linear a, b;
};
struct Reversed : nn::Module {
  Reversed() : b(in("b"), {2, 2}), c(in("c"), {2, 2}), a(in("a"), {2, 2}) {}
  nn::Linear b, c, a;
};

}  // namespace

int main() {
  const std::uint64_t key = mix(kSeed, kStep);
  for (const std::uint32_t row : {7u, 8u, 7u})
    std::printf("row %u: %08x\n", row, philox4x32({row, /*column=*/0, 0, 0}, key)[0]);

  const auto backend = open_cpu({.threads = 1});
  Two two;
  Reversed reversed;
  const nn::ParameterSet first(two, *backend), second(reversed, *backend);
  const auto of = [](const nn::ParameterSet& set) { return ops::to_host<float>(set.value(*set.find("a.weight"))); };
  std::printf("a.weight is the same in another order and with more layers: %s\n",
              of(first) == of(second) ? "yes" : "no");
}
