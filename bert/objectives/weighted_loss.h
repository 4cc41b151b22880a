// Cross-entropy whose classes have weights and whose targets are smoothed.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/ops.h"

namespace bertrand::objectives {

struct LossWeights {
  std::vector<double> classes;  ///< a weight for each class; empty: 1 for all
  double smoothing = 0;         ///< ε: the target is (1 − ε) on the label and ε / classes on every class

  bool plain() const { return classes.empty() && smoothing == 0; }
  double weight(std::int32_t label) const { return classes.empty() ? 1 : classes[static_cast<std::size_t>(label)]; }
};

/// Σ over the rows r of Σ over the classes k of −w_k q_rk log p_rk / divisor, where q is the smoothed target (Szegedy
/// et al. 2016): torch.nn.functional.cross_entropy with weight and label_smoothing if the divisor is the sum of the
/// labels' weights. `logits` [rows, classes]; a label for each row.
Variable weighted_cross_entropy(const Variable& logits, std::span<const std::int32_t> labels,
                                const LossWeights& weights, double divisor);

/// n / (classes · times that the class occurs), scikit-learn's "balanced"; 1 for a class that does not occur.
std::vector<double> balanced_weights(std::span<const std::int32_t> labels, std::size_t classes);

}  // namespace bertrand::objectives
