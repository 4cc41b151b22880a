#include "layer_norm_backward/layer_norm_backward.h"

#include <cmath>

#include "grader.h"

const char* const kHint =
    "dbeta is the easiest, then dgamma (both are sums over all rows); if dx alone is wrong, see which of its three "
    "terms "
    "is missing: with gamma 1 and dy = 1, 1, 1 every dx is 0";

namespace {

using Row = std::vector<double>;
constexpr double kEpsilon = 1e-3;

/// L = Σ y ∘ dy
double loss(const Row& x, const Row& gamma, const Row& beta, const Row& dy) {
  const std::size_t n = gamma.size();
  double sum = 0;
  for (std::size_t row = 0; row < x.size() / n; ++row) {
    double mean = 0, variance = 0;
    for (std::size_t j = 0; j < n; ++j) mean += x[row * n + j] / static_cast<double>(n);
    for (std::size_t j = 0; j < n; ++j) variance += std::pow(x[row * n + j] - mean, 2) / static_cast<double>(n);
    for (std::size_t j = 0; j < n; ++j)
      sum += ((x[row * n + j] - mean) / std::sqrt(variance + kEpsilon) * gamma[j] + beta[j]) * dy[row * n + j];
  }
  return sum;
}

/// The slopes of f at each entry of `at`.
template <class F>
Row differences(Row at, const F& f) {
  constexpr double kStep = 1e-5;
  Row slopes;
  for (double& v : at) {
    const double middle = v;
    v = middle + kStep;
    const double above = f(at);
    v = middle - kStep;
    slopes.push_back((above - f(at)) / (2 * kStep));
    v = middle;
  }
  return slopes;
}

}  // namespace

void check(grader::Grader& grader) {
  const auto compare = [&](const char* what, const Row& x, const Row& gamma, const Row& dy) {
    grader.begin(what);
    const Row beta(gamma.size(), 0.5);
    const LayerNormGradients got = layer_norm_backward(x, gamma, kEpsilon, dy);
    grader.entries("dx", got.dx, differences(x, [&](const Row& v) { return loss(v, gamma, beta, dy); }), 1e-7);
    grader.entries("dgamma", got.dgamma, differences(gamma, [&](const Row& v) { return loss(x, v, beta, dy); }), 1e-7);
    grader.entries("dbeta", got.dbeta, differences(beta, [&](const Row& v) { return loss(x, gamma, v, dy); }), 1e-7);
  };
  compare("one row, gamma 1, dy = 1, 1, 1", {1, 2, 4}, {1, 1, 1}, {1, 1, 1});
  compare("one row, gamma 1", {1, 2, 4}, {1, 1, 1}, {1, -2, 0.5});
  compare("one row", {0.3, -1, 2, 0.5}, {0.5, 2, -1, 1}, {1, 0.25, -2, 3});
  compare("three rows", {0.3, -1, 2, 5, 4, -3, 0.1, 0.2, 0.4}, {0.5, 2, -1}, {1, 2, 3, -1, 0.5, 0, 2, -2, 1});
  compare("a row of equal numbers", {7, 7}, {1, 2}, {1, -1});
}
