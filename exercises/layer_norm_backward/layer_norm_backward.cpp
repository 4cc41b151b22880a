// Exercise: layer norm's backward (Ba, Kiros and Hinton 2016, "Layer Normalization"). Forward, for each row of n
// numbers:
//
//   μ = Σ x / n     σ = √(Σ (x − μ)² / n + ε)     x̂ = (x − μ) / σ     y = x̂ ∘ γ + β
//
// Each x[i] acts in three ways on the loss: directly, through μ, and through σ. Those three are the terms of
//
//   dx = (g − Σ g / n − x̂ · (Σ g ∘ x̂) / n) / σ     with g = dy ∘ γ
//   dγ = Σ over the rows of dy ∘ x̂                  dβ = Σ over the rows of dy
//
// Derive dx yourself before you believe it: dμ/dx[i] = 1/n, dσ/dx[i] = x̂[i] / n. The grader knows the forward formula
// only, and compares with its differences.
//
//   scripts/grade.sh layer_norm_backward
#include "layer_norm_backward/layer_norm_backward.h"

#include <cmath>

LayerNormGradients layer_norm_backward(const std::vector<double>& x, const std::vector<double>& gamma, double epsilon,
                                       const std::vector<double>& dy) {
  const std::size_t n = gamma.size(), rows = x.size() / n;
  LayerNormGradients out{std::vector<double>(x.size()), std::vector<double>(n), std::vector<double>(n)};
  for (std::size_t row = 0; row < rows; ++row) {
    const double* const in = &x[row * n];
    const double* const above = &dy[row * n];
    // your code: fill out.dx[row * n + j], add to out.dgamma[j] and out.dbeta[j]
  }
  return out;
}
