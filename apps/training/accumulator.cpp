#include "apps/training/accumulator.h"

#include <algorithm>
#include <utility>

namespace bertrand::training {

void GradientAccumulator::begin(std::int64_t first, std::int64_t micro_batches) {
  for (auto& sum : std::exchange(waiting_, {})) spare_.push_back(std::move(sum.values));  // of a step that failed
  next_ = first;
  micro_batches_ = micro_batches;
}

void GradientAccumulator::add(const Tensor& gradients) {
  distributed::Addend sum{.first = next_++, .count = 1, .values = gradients};
  while (!waiting_.empty() && distributed::siblings(waiting_.back(), sum, micro_batches_)) {
    distributed::Addend left = std::move(waiting_.back());
    waiting_.pop_back();
    ops::add_into(left.values, gradients);
    sum.first = left.first;
    sum.count += left.count;
    spare_.push_back(std::move(left.values));
  }
  if (spare_.empty()) spare_.emplace_back(gradients.shape(), gradients.dtype(), gradients.backend());
  sum.values = std::move(spare_.back());
  spare_.pop_back();
  ops::copy_into(gradients, sum.values);
  waiting_.push_back(std::move(sum));
}

std::vector<distributed::Addend> GradientAccumulator::finish(const Tensor& gradients) {
  std::vector<distributed::Addend> sums = std::exchange(waiting_, {});
  for (const auto& sum : sums) spare_.push_back(sum.values);
  sums.push_back({.first = next_++, .count = 1, .values = gradients});
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
