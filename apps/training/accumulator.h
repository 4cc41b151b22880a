// Sums the gradients of one replica's micro-batches, as far as the pairwise tree of the step allows.
#pragma once
#include <cstdint>
#include <vector>

#include "distributed/pairwise_tree.h"
#include "tensor/ops.h"

namespace bertrand::training {

/// A binary counter of buffers. The order of the additions is a function of the number of micro-batches of the step
/// alone. With one micro-batch there is no buffer and no pass over memory.
class GradientAccumulator {
 public:
  /// Micro-batches `first`, first + 1, … of a step of `micro_batches` follow.
  void begin(std::int64_t first, std::int64_t micro_batches);
  /// Takes the gradient of the next one out of `gradients` (flat), which may be overwritten afterwards.
  void add(const Tensor& gradients);
  /// The last one of this replica. Returns what is still to be added up, in order: the sums that wait, and `gradients`
  /// itself. They are good until the next add().
  std::vector<distributed::Addend> finish(const Tensor& gradients);

  /// How many buffers a replica needs at the same time for `count` micro-batches from `first` on.
  static int buffers(std::int64_t first, std::int64_t count, std::int64_t micro_batches);

 private:
  std::int64_t next_ = 0, micro_batches_ = 0;
  std::vector<distributed::Addend> waiting_;
  std::vector<Tensor> spare_;
};

}  // namespace bertrand::training
