// One answer.
#include "clip_gradients/clip_gradients.h"

#include <cmath>

double clip_gradients(std::vector<std::vector<double>>& gradients, double limit) {
  double squares = 0;
  for (const auto& tensor : gradients)
    for (const double g : tensor) squares += g * g;
  const double norm = std::sqrt(squares);
  if (norm > limit)
    for (auto& tensor : gradients)
      for (double& g : tensor) g *= limit / norm;
  return norm;
}
