// The state of the loss scale, which lives on the device.
#include "optim/loss_scale.h"

#include <limits>

namespace bertrand::optim {

LossScale::LossScale(DType dtype, Backend& backend) : dynamic_(dtype == DType::f16) {
  scaling_.state = Tensor({3}, DType::f64, backend);
  scaling_.least = dynamic_ ? 0x1p-10 : 1;
  if (!dynamic_) scaling_.growth_interval = std::numeric_limits<double>::infinity();
  resume({});
}

Tensor LossScale::gradient_of_loss() const {
  return dynamic_ ? ops::cast(scaling_.state.rows(0, 1), DType::f32) : Tensor{};
}

LossScale::State LossScale::state_of(const double* numbers) {
  return {.scale = numbers[0],
          .good_steps = static_cast<std::int64_t>(numbers[1]),
          .skipped_steps = static_cast<std::int64_t>(numbers[2])};
}

LossScale::State LossScale::read() const { return state_of(ops::to_host<double>(scaling_.state).data()); }

void LossScale::resume(const State& state) {
  const double values[] = {dynamic_ ? state.scale : 1, static_cast<double>(state.good_steps),
                           static_cast<double>(state.skipped_steps)};
  scaling_.state.backend().upload(values, scaling_.state);
}

}  // namespace bertrand::optim
