// Sums the gradients of one replica's micro-batches, as far as the pairwise tree of the step allows. A gradient is of
// the model's type, a sum of several is f32 for the half types: in 8 or 11 digits small ones would vanish beside the
// sum.
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
  /// Before the last one of this replica is computed. Returns what will be left to add up, in order: the sums that
  /// wait, and `gradients` itself or, where the step has others and their type is not that of sums, memory for a copy.
  std::vector<distributed::Addend> last(const Tensor& gradients);
  /// Where the sum over the whole step may go if last() was not called: `gradients`, or memory of the type of sums.
  Tensor place_of_sum(const Tensor& gradients);

  /// How many buffers a replica needs at the same time for `count` micro-batches from `first` on; one more where sums
  /// are of another type.
  static int buffers(std::int64_t first, std::int64_t count, std::int64_t micro_batches);

 private:
  std::int64_t next_ = 0, micro_batches_ = 0;
  /// A buffer that nobody else holds.
  Tensor free_buffer(const Tensor& gradients);

  std::vector<distributed::Addend> waiting_;
  std::vector<Tensor> buffers_;
};

}  // namespace bertrand::training
