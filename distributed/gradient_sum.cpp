#include "distributed/gradient_sum.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tensor/ops.h"
#include "tensor/profiler.h"

namespace bertrand::distributed {

void GradientSum::begin(const Tensor& gradients, const Share& mine, std::int64_t micro_batches) {
  gradients_ = gradients;
  mine_ = mine;
  micro_batches_ = micro_batches;
  next_ = mine.first;
  nodes_.clear();
  sum_ = {};
  if (mine.count <= 1) begin_buckets();
}

Tensor GradientSum::free_buffer() {
  for (const Tensor& buffer : buffers_)
    if (buffer.unique()) return buffer;
  return buffers_.emplace_back(gradients_.shape(), compute_type(gradients_.dtype()), gradients_.backend());
}

Tensor GradientSum::place_of_sum() {
  return micro_batches_ == 1 || compute_type(gradients_.dtype()) == gradients_.dtype() ? gradients_ : free_buffer();
}

void GradientSum::begin_buckets() {
  sum_ = place_of_sum();
  if (mine_.count > 0) nodes_.push_back({.first = next_, .count = 1, .values = sum_});
  unsent_ = final_from_ = gradients_.elements();
  final_windows_.clear();
}

void GradientSum::add() {
  check(next_ < mine_.end(), "gradients: expected {} micro-batches of this replica, got more", mine_.count);
  if (!computes_last()) {
    nodes_.push_back({.first = next_, .count = 1, .values = place_of_sum()});
    if (const Tensor& values = nodes_.back().values; !values.same_memory(gradients_))
      ops::copy_into(gradients_, values);
    nodes_ = add_siblings(nodes_, micro_batches_, ops::add_into);
    if (Tensor& values = nodes_.back().values; values.same_memory(gradients_)) {
      values = free_buffer();
      ops::copy_into(gradients_, values);
    }
  }
  ++next_;
  if (computes_last()) begin_buckets();
}

void GradientSum::ready(const Tensor& window) {
  if (!collective_.overlaps() || !computes_last() || window.data() < gradients_.data() ||
      window.data() >= gradients_.data() + gradients_.bytes())
    return;
  const Dim begin =
      static_cast<Dim>(static_cast<std::size_t>(window.data() - gradients_.data()) / size_of(window.dtype()));
  // The elements from there to the next parameter are of no parameter.
  final_windows_[(begin + window.elements() + kVectorElements - 1) / kVectorElements * kVectorElements] = begin;
  for (auto next = final_windows_.find(final_from_); next != final_windows_.end();
       next = final_windows_.find(final_from_)) {
    final_from_ = next->second;
    final_windows_.erase(next);
  }
  while (unsent_ - bucket_ >= final_from_) start(unsent_ - bucket_);
}

Tensor GradientSum::finish() {
  check(next_ == mine_.end(), "gradients: expected {} micro-batches of this replica, got {}", mine_.count,
        next_ - mine_.first);
  std::optional<Span> waiting;
  if (collective_.overlaps()) waiting.emplace(sum_.backend(), "wait for gradients", Work{}, Profiler::Kind::wait);
  while (unsent_ > 0) start(collective_.overlaps() ? std::max(Dim{0}, unsent_ - bucket_) : 0);
  collective_.finish_sums();
  return std::exchange(sum_, {});
}

void GradientSum::start(Dim begin) {
  const Shape shape{unsent_ - begin};
  std::vector<Addend> addends;
  for (const Addend& node : nodes_) addends.push_back({node.first, node.count, node.values.window(begin, shape)});
  if (mine_.count > 0 && !sum_.same_memory(gradients_))
    ops::copy_into(gradients_.window(begin, shape), addends.back().values);
  collective_.start_sum(std::move(addends), micro_batches_, sum_.window(begin, shape));
  unsent_ = begin;
}

int GradientSum::buffers(const Share& mine, std::int64_t micro_batches) {
  std::vector<Addend> nodes;
  std::size_t most = 0;
  for (std::int64_t i = mine.first; i + 1 < mine.end(); ++i) {
    nodes.push_back({.first = i, .count = 1, .values = {}});
    nodes = add_siblings(nodes, micro_batches, [](const Tensor&, const Tensor&) {});
    most = std::max(most, nodes.size());
  }
  return static_cast<int>(most);
}

int GradientSum::most_buffers(std::int64_t micro_batches, int replicas) {
  const Share longest = share_of(micro_batches, 0, replicas);
  // One replica alone begins with the first part of the tree and needs half as many.
  return replicas == 1 ? buffers(longest, micro_batches) : static_cast<int>(most_nodes(longest.count - 1));
}

}  // namespace bertrand::distributed
