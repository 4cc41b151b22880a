#include "training/step/accumulator.h"

#include <algorithm>
#include <utility>

namespace bertrand::training {

void GradientAccumulator::begin(std::int64_t first, std::int64_t micro_batches) {
  waiting_.clear();
  next_ = first;
  micro_batches_ = micro_batches;
}

Tensor GradientAccumulator::free_buffer(const Tensor& gradients) {
  for (const Tensor& buffer : buffers_)
    if (buffer.unique()) return buffer;
  return buffers_.emplace_back(gradients.shape(), compute_type(gradients.dtype()), gradients.backend());
}

Tensor GradientAccumulator::place_of_sum(const Tensor& gradients) {
  return micro_batches_ == 1 || compute_type(gradients.dtype()) == gradients.dtype() ? gradients
                                                                                     : free_buffer(gradients);
}

void GradientAccumulator::add(const Tensor& gradients) {
  waiting_.push_back({.first = next_++, .count = 1, .values = place_of_sum(gradients)});
  if (Tensor& values = waiting_.back().values; !values.same_memory(gradients)) ops::copy_into(gradients, values);
  waiting_ = distributed::add_siblings(waiting_, micro_batches_, ops::add_into);
  if (Tensor& values = waiting_.back().values; values.same_memory(gradients)) {
    values = free_buffer(gradients);
    ops::copy_into(gradients, values);
  }
}

std::vector<distributed::Addend> GradientAccumulator::last(const Tensor& gradients) {
  std::vector<distributed::Addend> sums = std::exchange(waiting_, {});
  sums.push_back({.first = next_++, .count = 1, .values = place_of_sum(gradients)});
  return sums;
}

int GradientAccumulator::buffers(std::int64_t first, std::int64_t count, std::int64_t micro_batches) {
  std::vector<distributed::Addend> waiting;
  std::size_t most = 0;
  for (std::int64_t i = first; i + 1 < first + count; ++i) {
    waiting.push_back({.first = i, .count = 1, .values = {}});
    waiting = distributed::add_siblings(waiting, micro_batches, [](const Tensor&, const Tensor&) {});
    most = std::max(most, waiting.size());
  }
  return static_cast<int>(most);
}

}  // namespace bertrand::training
