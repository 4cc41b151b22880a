#pragma once
#include <cstddef>
#include <vector>

struct LayerNormGradients {
  std::vector<double> dx;             ///< [rows, n], row after row
  std::vector<double> dgamma, dbeta;  ///< [n]
};

/// The gradients of y = (x − mean) / √(variance + epsilon) ∘ gamma + beta, row by row; x and dy [rows, n], gamma [n].
LayerNormGradients layer_norm_backward(const std::vector<double>& x, const std::vector<double>& gamma, double epsilon,
                                       const std::vector<double>& dy);
