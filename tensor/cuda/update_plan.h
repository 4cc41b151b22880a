// How the flat parameters are cut for the optimizer's kernels; kept on the GPU until the segments change.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "tensor/cuda/cuda_backend.h"

namespace bertrand::cuda {

/// What one block of an optimizer kernel works on: a part of one segment.
struct UpdateChunk {
  Dim begin, end;                         ///< elements of the flat tensors
  Dim first_of_segment, last_of_segment;  ///< the chunks [first, last) that share its segment
  double weight_decay;
  bool trust_ratio;
  double rate;  ///< share of the learning rate
};

class UpdatePlan {
 public:
  void follow(CudaBackend& backend, std::span<const UpdateSegment> segments);

  /// Null until there is a segment.
  const UpdateChunk* chunks() const { return chunks_ ? chunks_->as<const UpdateChunk>() : nullptr; }
  Dim count() const { return count_; }
  bool trust_ratios() const { return trust_ratios_; }

 private:
  std::vector<UpdateSegment> segments_;
  std::optional<Workspace> chunks_;
  Dim count_ = 0;
  bool trust_ratios_ = false;
};

}  // namespace bertrand::cuda
