// A typical mistake: each tensor is clipped by its own norm, which turns the direction of the whole.
// refused: three tensors, norm 13, limit 6.5: tensor 0 entry 0: got 3, expected 1.5
#include "clip_gradients/clip_gradients.h"

#include <cmath>

double clip_gradients(std::vector<std::vector<double>>& gradients, double limit) {
  double all = 0;
  for (auto& tensor : gradients) {
    double squares = 0;
    for (const double g : tensor) squares += g * g;
    all += squares;
    if (std::sqrt(squares) > limit)
      for (double& g : tensor) g *= limit / std::sqrt(squares);
  }
  return std::sqrt(all);
}
