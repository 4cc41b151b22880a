#include "optim/loss_scale.h"

namespace bertrand::optim {

LossScale::LossScale(Backend& backend) {
  scaling_.state = Tensor({3}, DType::f64, backend);
  resume({});
}

Tensor LossScale::gradient_of_loss() const {
  return scaling_.state ? ops::cast(scaling_.state.rows(0, 1), DType::f32) : Tensor{};
}

LossScale::State LossScale::read() const {
  if (!scaling_.state) return {.scale = 1};
  const std::vector<double> state = ops::to_host<double>(scaling_.state);
  return {.scale = state[0],
          .good_steps = static_cast<std::int64_t>(state[1]),
          .skipped_steps = static_cast<std::int64_t>(state[2])};
}

void LossScale::resume(const State& state) {
  const double values[] = {state.scale, static_cast<double>(state.good_steps),
                           static_cast<double>(state.skipped_steps)};
  scaling_.state.backend().upload(values, scaling_.state);
}

}  // namespace bertrand::optim
