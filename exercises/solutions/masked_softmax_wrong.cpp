// A typical mistake: −10000 is added to what is hidden, as the first BERT does, which fails if nothing is visible.
// refused: nothing is visible: entry 0: got 0.09[0-9]*, expected 0
#include "masked_softmax/masked_softmax.h"

#include <algorithm>
#include <cmath>

std::vector<double> masked_softmax(const std::vector<double>& x, const std::vector<bool>& visible) {
  std::vector<double> p = x;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!visible[i]) p[i] -= 10000;
  const double most = *std::ranges::max_element(p);
  double sum = 0;
  for (double& v : p) sum += v = std::exp(v - most);
  for (double& v : p) v /= sum;
  return p;
}
