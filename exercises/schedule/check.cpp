#include "schedule/schedule.h"

#include <cmath>

#include "grader.h"

const char* const kHint =
    "in C++ 3 / 4 is 0: make one of both a double; and look at the first and the last step of each part";

void check(grader::Grader& grader) {
  const auto entry = [&](int step, int warmup, int total, double expected) {
    grader.entry("step " + std::to_string(step), learning_rate(step, warmup, total, 0.5), 0.5 * expected);
  };
  grader.begin("rises to the peak (peak 0.5, warmup 4, total 12)");
  for (int step = 0; step < 4; ++step) entry(step, 4, 12, (step + 1) / 4.0);
  grader.begin("falls (peak 0.5, warmup 4, total 12)");
  const double root = std::sqrt(0.5);
  for (const auto& [step, share] : {std::pair{4, 1.0}, {6, (1 + root) / 2}, {8, 0.5}, {10, (1 - root) / 2}})
    entry(step, 4, 12, share);
  grader.begin("is over (peak 0.5, warmup 4, total 12)");
  entry(12, 4, 12, 0);
  entry(100, 4, 12, 0);
  grader.begin("without warm-up (peak 0.5, warmup 0, total 2)");
  entry(0, 0, 2, 1);
  entry(1, 0, 2, 0.5);
  grader.begin("nothing but warm-up (peak 0.5, warmup 3, total 3)");
  entry(2, 3, 3, 1);
  entry(3, 3, 3, 0);
}
