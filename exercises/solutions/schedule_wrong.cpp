// A typical mistake: a quotient of two ints.
// refused: rises to the peak .*: step 0: got 0, expected 0.125
#include "schedule/schedule.h"

#include <cmath>
#include <numbers>

double learning_rate(int step, int warmup, int total, double peak) {
  if (step >= total) return 0;
  if (step < warmup) return peak * ((step + 1) / warmup);
  const double t = static_cast<double>(step - warmup) / (total - warmup);
  return peak * 0.5 * (1 + std::cos(std::numbers::pi * t));
}
