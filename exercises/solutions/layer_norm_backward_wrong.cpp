// A typical mistake: σ is taken for a constant, so the third term is missing.
// refused: one row, gamma 1: dx entry 0: got
#include "layer_norm_backward/layer_norm_backward.h"

#include <cmath>

LayerNormGradients layer_norm_backward(const std::vector<double>& x, const std::vector<double>& gamma, double epsilon,
                                       const std::vector<double>& dy) {
  const std::size_t n = gamma.size(), rows = x.size() / n;
  LayerNormGradients out{std::vector<double>(x.size()), std::vector<double>(n), std::vector<double>(n)};
  for (std::size_t row = 0; row < rows; ++row) {
    const double* const in = &x[row * n];
    const double* const above = &dy[row * n];
    double mean = 0, variance = 0, sum_g = 0, sum_gx = 0;
    for (std::size_t j = 0; j < n; ++j) mean += in[j] / static_cast<double>(n);
    for (std::size_t j = 0; j < n; ++j) variance += (in[j] - mean) * (in[j] - mean) / static_cast<double>(n);
    const double sigma = std::sqrt(variance + epsilon);
    const auto x_hat = [&](std::size_t j) { return (in[j] - mean) / sigma; };
    for (std::size_t j = 0; j < n; ++j) {
      sum_g += above[j] * gamma[j];
      sum_gx += above[j] * gamma[j] * x_hat(j);
      out.dgamma[j] += above[j] * x_hat(j);
      out.dbeta[j] += above[j];
    }
    for (std::size_t j = 0; j < n; ++j)
      out.dx[row * n + j] = (above[j] * gamma[j] - sum_g / static_cast<double>(n)) / sigma;
  }
  return out;
}
