#pragma once
#include <vector>

struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;

  std::vector<double> m, v;  ///< running means of the gradient and of its square; 0 at first, as many as weights
  int steps = 0;             ///< done so far

  /// Moves the weights w against the gradient g, and counts the step.
  void step(std::vector<double>& w, const std::vector<double>& g, double learning_rate);
};
