#include "apps/training/accumulator.h"

#include <bit>

namespace bertrand::training {

std::size_t GradientAccumulator::carry(const Tensor& gradients) {
  std::size_t level = 0;
  for (; level < full_.size() && full_[level]; ++level) {
    ops::add_into(levels_[level], gradients);
    full_[level] = false;
  }
  return level;
}

void GradientAccumulator::add(const Tensor& gradients) {
  const std::size_t level = carry(gradients);
  if (level == levels_.size()) {
    levels_.emplace_back(gradients.shape(), gradients.dtype(), gradients.backend());
    full_.push_back(false);
  }
  ops::copy_into(gradients, levels_[level]);
  full_[level] = true;
}

void GradientAccumulator::finish(const Tensor& gradients) {
  for (std::size_t level = 0; level < full_.size(); ++level) {
    if (full_[level]) ops::add_into(levels_[level], gradients);
    full_[level] = false;
  }
}

int GradientAccumulator::buffers(std::int64_t micro_batches) {
  return micro_batches <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(micro_batches - 1));
}

double pairwise_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values[0];
  const std::size_t left = std::bit_floor(values.size() - 1);  // the level that the counter fills first
  return pairwise_sum(values.first(left)) + pairwise_sum(values.subspan(left));
}

}  // namespace bertrand::training
