// Exercise: a schedule. Write the learning rate of a step: it rises in a line, then falls along half a cosine.
//
//   step < warmup:            peak · (step + 1) / warmup          step 0 moves already, step warmup − 1 has the peak
//   warmup ≤ step < total:    peak · ½ (1 + cos(π t)),   t = (step − warmup) / (total − warmup)
//   total ≤ step:             0
//
// (Warm-up: Goyal et al. 2017, "Accurate, Large Minibatch SGD"; cosine: Loshchilov and Hutter 2017, "SGDR",
// equation 5.) Mind what C++ makes of int / int. `warmup` may be 0.
//
//   scripts/grade.sh schedule
#include "schedule/schedule.h"

#include <cmath>
#include <numbers>

double learning_rate(int step, int warmup, int total, double peak) {
  return 0;  // your code instead
}
