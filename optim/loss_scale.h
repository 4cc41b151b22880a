// Dynamic loss scaling, which f16 needs: gradients below 6e-8 would be 0 in it (Micikevicius et al. 2018).
#pragma once
#include <cstdint>

#include "tensor/ops.h"

namespace bertrand::optim {

/// The rule is that of NVIDIA's trainers and PyTorch's GradScaler: begin at 2^16; halve after a step whose gradient is
/// not finite, which is skipped; double after 2,000 good steps in a row. It is applied on the device
/// (tensor/backend.h).
class LossScale {
 public:
  struct State {
    double scale = 0x1p16;
    std::int64_t good_steps = 0;  ///< in a row, since the scale last changed
    std::int64_t skipped_steps = 0;
  };
  static constexpr double kLeast = 0x1p-10;  ///< below it the numbers of the model are to blame, not their scale

  /// The scale is 1 and stays it.
  LossScale() = default;
  explicit LossScale(Backend& backend);

  explicit operator bool() const { return static_cast<bool>(scaling_.state); }
  /// What backward starts from: the scale, [1] f32 on the device; empty where it is 1.
  Tensor gradient_of_loss() const;
  const LossScaling& scaling() const { return scaling_; }

  /// Synchronizes.
  State read() const;
  void resume(const State& state);

 private:
  LossScaling scaling_;
};

}  // namespace bertrand::optim
