// One answer.
#include "masked_softmax/masked_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

std::vector<double> masked_softmax(const std::vector<double>& x, const std::vector<bool>& visible) {
  std::vector<double> p(x.size(), 0.0);
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (visible[i]) most = std::max(most, x[i]);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (visible[i]) sum += p[i] = std::exp(x[i] - most);
  for (double& v : p)
    if (sum > 0) v /= sum;
  return p;
}
