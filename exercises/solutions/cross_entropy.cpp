// One answer.
#include "cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>

CrossEntropy cross_entropy(const std::vector<double>& logits, const std::vector<int>& labels, int classes) {
  CrossEntropy out{.loss = 0, .dlogits = std::vector<double>(logits.size())};
  const auto count = static_cast<double>(std::ranges::count_if(labels, [](int label) { return label >= 0; }));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0) continue;
    const double* const z = &logits[row * static_cast<std::size_t>(classes)];
    double* const dz = &out.dlogits[row * static_cast<std::size_t>(classes)];
    const double most = *std::max_element(z, z + classes);
    double sum = 0;
    for (int j = 0; j < classes; ++j) sum += std::exp(z[j] - most);
    const double log_sum = most + std::log(sum);
    out.loss += (log_sum - z[labels[row]]) / count;
    for (int j = 0; j < classes; ++j) dz[j] = (std::exp(z[j] - log_sum) - (j == labels[row])) / count;
  }
  return out;
}
