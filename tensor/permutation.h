// An order of n things that takes no memory: place i of it is computed from a key.
#pragma once
#include <cstdint>

namespace bertrand {

/// A permutation of 0 … n - 1 that follows from a key: a Feistel network over the next power of four, walked until it
/// is back below n (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains").
class Permutation {
 public:
  /// `n` is at most 2^62.
  Permutation(std::uint64_t n, std::uint64_t key);

  std::uint64_t size() const { return n_; }
  /// What stands at place `i`, which is below n.
  std::uint64_t operator[](std::uint64_t i) const;

 private:
  std::uint64_t n_, key_;
  int half_bits_ = 4;  // at least: with a domain of a few numbers there would be too few orders
};

}  // namespace bertrand
