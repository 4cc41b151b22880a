#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tensor/permutation.h"

using bertrand::Permutation;

namespace {

std::vector<std::uint64_t> list(const Permutation& permutation) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < permutation.size(); ++i) numbers.push_back(permutation[i]);
  return numbers;
}

}  // namespace

TEST_CASE("a keyed permutation holds every number once, and other keys give other orders") {
  for (const std::uint64_t n : {0, 1, 2, 3, 255, 256, 257, 1024, 5000}) {
    CAPTURE(n);
    const std::vector<std::uint64_t> order = list({n, 7});
    std::vector<std::uint64_t> sorted = order;
    std::ranges::sort(sorted);
    for (std::uint64_t i = 0; i < n; ++i) CHECK(sorted[i] == i);
    if (n > 100) CHECK(order != list({n, 8}));
  }
}

TEST_CASE("a key has the order that it always had") {  // in which a run that goes on finds its examples
  CHECK(list({10, 7}) == std::vector<std::uint64_t>{2, 4, 9, 5, 3, 0, 6, 8, 7, 1});
  CHECK(list({10, 8}) == std::vector<std::uint64_t>{2, 7, 6, 5, 3, 9, 4, 1, 0, 8});
  const Permutation longer(300, 7);
  CHECK(longer[0] == 125);
  CHECK(longer[9] == 199);
  const Permutation power(1024, 7);  // of four: the domain is as large
  CHECK(power[0] == 664);
  CHECK(power[9] == 431);
}

TEST_CASE("each of the orders of a few things is as likely as the others") {
  std::map<std::vector<std::uint64_t>, int> seen;
  constexpr int kKeys = 24000;
  for (std::uint64_t key = 0; key < kKeys; ++key) ++seen[list({4, key})];
  CHECK(seen.size() == 24);
  for (const auto& [order, count] : seen) CHECK(count == doctest::Approx(kKeys / 24).epsilon(0.15));
}

TEST_CASE("neighbours in a large order are far apart in the list") {
  const std::uint64_t n = 3'000'000'000;
  const Permutation order(n, 5);
  double distance = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const auto a = static_cast<double>(order[i]), b = static_cast<double>(order[i + 1]);
    distance += std::max(a, b) - std::min(a, b);
  }
  CHECK(distance / 10000 / static_cast<double>(n) == doctest::Approx(1.0 / 3).epsilon(0.05));
}
