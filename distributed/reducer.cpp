#include "distributed/reducer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tensor/ops.h"
#include "tensor/profiler.h"

namespace bertrand::distributed {
namespace {

/// Parameters begin at multiples of this (nn/parameter_set.h); what lies between them is nobody's.
constexpr Dim kAlignment = 16;

}  // namespace

void Reducer::begin(Step step) {
  step_ = std::move(step);
  end_ = final_from_ = step_.sum.elements();
  final_parts_.clear();
}

void Reducer::ready(const Tensor& part) {
  if (!collective_.overlaps() || !step_.last || part.data() < step_.last.data() ||
      part.data() >= step_.last.data() + step_.last.bytes())
    return;
  const Dim begin = static_cast<Dim>(static_cast<std::size_t>(part.data() - step_.last.data()) / size_of(part.dtype()));
  final_parts_[(begin + part.elements() + kAlignment - 1) / kAlignment * kAlignment] = begin;
  for (auto next = final_parts_.find(final_from_); next != final_parts_.end(); next = final_parts_.find(final_from_)) {
    final_from_ = next->second;
    final_parts_.erase(next);
  }
  while (end_ - slice_ >= final_from_) start(end_ - slice_);
}

void Reducer::finish() {
  std::optional<Span> waiting;
  if (collective_.overlaps()) waiting.emplace(step_.sum.backend(), "wait for gradients", Work{}, Profiler::Kind::wait);
  while (end_ > 0) start(collective_.overlaps() ? std::max(Dim{0}, end_ - slice_) : 0);
  collective_.finish_sums();
  step_ = {};
}

void Reducer::start(Dim begin) {
  const Shape shape{end_ - begin};
  std::vector<Addend> addends;
  for (const Addend& addend : step_.addends)
    addends.push_back({addend.first, addend.count, addend.values.window(begin, shape)});
  if (step_.last && !addends.back().values.same_memory(step_.last.window(begin, shape)))
    ops::copy_into(step_.last.window(begin, shape), addends.back().values);
  collective_.start_sum(std::move(addends), step_.parts, step_.sum.window(begin, shape));
  end_ = begin;
}

}  // namespace bertrand::distributed
