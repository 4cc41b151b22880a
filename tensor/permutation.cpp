#include "tensor/permutation.h"

#include <utility>

#include "tensor/random.h"

namespace bertrand {

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(n), key_(key) {
  while ((std::uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
}

std::uint64_t Permutation::operator[](std::uint64_t i) const {
  constexpr std::uint64_t kRounds = 6;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = i >> half_bits_, right = i & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round)
      left = std::exchange(right, left ^ (mix(mix(key_, round), right) & mask));
    i = left << half_bits_ | right;
  } while (i >= n_);
  return i;
}

}  // namespace bertrand
