// A typical mistake: no bias correction, so that the first steps are three times too long.
// refused: no decay, after 1: w entry 0: got
#include "adamw/adamw.h"

#include <cmath>

void AdamW::step(std::vector<double>& w, const std::vector<double>& g, double learning_rate) {
  m.resize(w.size());
  v.resize(w.size());
  ++steps;
  for (std::size_t i = 0; i < w.size(); ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * g[i];
    v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
    const double mean = m[i], square = v[i];
    w[i] -= learning_rate * (mean / (std::sqrt(square) + epsilon) + weight_decay * w[i]);
  }
}
