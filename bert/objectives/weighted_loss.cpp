#include "bert/objectives/weighted_loss.h"

#include <numeric>
#include <set>

#include "autograd/operators.h"

namespace bertrand::objectives {

/// No kernel takes weights: the loss is the plain cross-entropy, one softmax for each class that occurs, on every
/// device. With log p = x − lse, a row of label y costs a_y (lse − x_y) + Σ_k t_k x_k, where a_y is what the row's
/// targets add up to and t_k = ε / K (k = y ? Σ w : 0) − ε / K w_k. The first term is the plain cross-entropy, class by
/// class, as a_y is one number for each class; the second is linear.
Variable weighted_cross_entropy(const Variable& logits, std::span<const std::int32_t> labels,
                                const LossWeights& weights, double divisor) {
  Backend& backend = logits.value().backend();
  const Dim rows = std::ssize(labels), classes = logits.shape()[1];
  const double each = weights.smoothing / static_cast<double>(classes);  // ε / K
  double sum_of_weights = 0;
  for (Dim k = 0; k < classes; ++k) sum_of_weights += weights.weight(static_cast<std::int32_t>(k));

  Variable loss;
  for (const std::int32_t one : std::set<std::int32_t>(labels.begin(), labels.end())) {
    std::vector<std::int32_t> of_class(labels.begin(), labels.end());
    for (std::int32_t& label : of_class)
      if (label != one) label = -1;  // softmax_cross_entropy passes it over
    const double scale = (1 - weights.smoothing) * weights.weight(one) + each * sum_of_weights;
    const Variable part = softmax_cross_entropy(logits, ops::from_host(of_class, {rows}, backend), divisor) * scale;
    loss = loss ? loss + part : part;
  }
  if (weights.smoothing == 0) return loss;
  std::vector<double> linear;
  for (const std::int32_t label : labels)
    for (std::int32_t k = 0; k < classes; ++k)
      linear.push_back(each * ((k == label ? sum_of_weights : 0) - weights.weight(k)));
  const Tensor t = ops::cast(ops::from_host(linear, logits.shape(), backend), logits.value().dtype());
  return loss + sum(logits * Variable(t)) * (1 / divisor);
}

std::vector<double> balanced_weights(std::span<const std::int32_t> labels, std::size_t classes) {
  std::vector<double> counts(classes, 0);
  for (const std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
  for (double& count : counts)
    count = count > 0 ? static_cast<double>(labels.size()) / (static_cast<double>(classes) * count) : 1;
  return counts;
}

}  // namespace bertrand::objectives
