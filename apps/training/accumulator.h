// Sums the gradients of micro-batches in one fixed pairwise tree, whoever computes which.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/ops.h"

namespace bertrand::training {

/// A binary counter of buffers: buffer k holds the sum of 2^k micro-batches in a row. The order of the additions is a
/// function of the number of micro-batches alone. With one micro-batch there is no buffer and no pass over memory.
class GradientAccumulator {
 public:
  /// Takes the gradient of the next micro-batch out of `gradients` (flat), which may be overwritten afterwards.
  void add(const Tensor& gradients);
  /// The last one: leaves the sum of all in `gradients` and forgets the others.
  void finish(const Tensor& gradients);

  /// How many buffers `micro_batches` need at the same time.
  static int buffers(std::int64_t micro_batches);

 private:
  /// Adds to `gradients` the buffers of every full level from the lowest on; returns the first free level.
  std::size_t carry(const Tensor& gradients);

  std::vector<Tensor> levels_;
  std::vector<bool> full_;
};

/// The same tree for numbers on the host.
double pairwise_sum(std::span<const double> values);

}  // namespace bertrand::training
