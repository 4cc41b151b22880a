// One answer.
#include "schedule/schedule.h"

#include <cmath>
#include <numbers>

double learning_rate(int step, int warmup, int total, double peak) {
  if (step >= total) return 0;
  if (step < warmup) return peak * (step + 1) / warmup;  // from left to right, so that the product is a double
  const double t = static_cast<double>(step - warmup) / (total - warmup);
  return peak * 0.5 * (1 + std::cos(std::numbers::pi * t));
}
