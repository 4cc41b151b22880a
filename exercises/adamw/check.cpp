#include "adamw/adamw.h"

#include <cmath>

#include "grader.h"

const char* const kHint =
    "t is 1 in the first step: count before you use it; ε is added after the root; λ w is outside of the moments";

namespace {

/// The same for one weight and constant gradient, in closed form: m̂ = g and v̂ = g² in every step.
double constant_gradient(double w, double g, int steps, const AdamW& o, double rate) {
  for (int t = 0; t < steps; ++t) w -= rate * (g / (std::abs(g) + o.epsilon) + o.weight_decay * w);
  return w;
}

}  // namespace

void check(grader::Grader& grader) {
  const std::vector<double> start{1, -2, 0, 0.5}, g{0.1, -3, 1e-6, 0};
  AdamW plain{.weight_decay = 0}, decayed{.weight_decay = 0.1};
  std::vector<double> w = start, u = start;
  for (int step = 1; step <= 3; ++step) {
    plain.step(w, g, 0.01);
    decayed.step(u, g, 0.01);
    std::vector<double> expected_w, expected_u;
    for (std::size_t i = 0; i < g.size(); ++i) {
      expected_w.push_back(constant_gradient(start[i], g[i], step, plain, 0.01));
      expected_u.push_back(constant_gradient(start[i], g[i], step, decayed, 0.01));
    }
    grader.begin("the same gradient in every step, no decay, after " + std::to_string(step));
    grader.entries("w", w, expected_w, 1e-10);
    grader.begin("the same with decay 0.1, after " + std::to_string(step));
    grader.entries("w", u, expected_u, 1e-10);
  }
  // Two gradients by hand: m = 0.09 · 1 − 0.1 · 2 and v = 0.000999 + 0.004, corrected by 1 − 0.9² and 1 − 0.999².
  AdamW two{.weight_decay = 0};
  std::vector<double> x{0};
  two.step(x, {1}, 1);
  two.step(x, {-2}, 1);
  grader.begin("gradients 1 and -2, learning rate 1");
  grader.entries("m", two.m, {-0.11});
  grader.entries("v", two.v, {0.004999});
  grader.entry("w entry 0", x[0], -1 / (1 + 1e-8) + (0.11 / 0.19) / (std::sqrt(0.004999 / 0.001999) + 1e-8), 1e-10);
  grader.entry("steps", two.steps, 2);
}
