// Dynamic loss scaling, which f16 needs: gradients below 6e-8 would be 0 in it (Micikevicius et al. 2018).
#pragma once
#include <cstdint>

#include "tensor/ops.h"
#include "tensor/update.h"

namespace bertrand::optim {

/// The rule of NVIDIA's trainers and PyTorch's GradScaler: begin at 2^16; halve after a step whose gradient is not
/// finite, which is skipped; double after 2,000 good steps in a row. The device applies it (tensor/update.h), so that
/// the host need not wait. If the scale falls below 2^-10 training has ended: the model's numbers are to blame and not
/// their scale, and no later step changes anything. Types other than f16 have the scale 1, and training ends with the
/// first gradient that is not finite.
class LossScale {
 public:
  struct State {
    double scale = 0x1p16;
    std::int64_t good_steps = 0;  ///< in a row, since the scale last changed
    std::int64_t skipped_steps = 0;
  };

  /// For a model that computes in `dtype`.
  LossScale(DType dtype, Backend& backend);

  bool dynamic() const { return dynamic_; }
  /// What backward() starts from: the scale, [1] f32 on the device; empty if it is always 1.
  Tensor gradient_of_loss() const;
  const LossScaling& scaling() const { return scaling_; }
  bool has_ended(const State& state) const { return state.scale < scaling_.least; }

  static State state_of(const double* numbers);  ///< from the three numbers of scaling().state
  /// Synchronizes.
  State read() const;
  /// If it is not dynamic, only the number of skipped steps counts.
  void resume(const State& state);

 private:
  bool dynamic_;
  LossScaling scaling_;
};

}  // namespace bertrand::optim
