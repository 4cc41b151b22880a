// One weight, three points, and the slope of the loss: by rule, by two evaluations, and downhill.
#include <cstdio>
#include <initializer_list>

namespace {

constexpr double kX[] = {1, 2, 3}, kY[] = {2, 3, 7};

/// L(w) = mean of (w x − y)²
double loss(double w) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += (w * kX[i] - kY[i]) * (w * kX[i] - kY[i]);
  return sum / 3;
}

/// dL/dw = mean of 2 (w x − y) x
double slope(double w) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += 2 * (w * kX[i] - kY[i]) * kX[i];
  return sum / 3;
}

/// One step after the other against the slope.
void descend(double rate) {
  std::printf("rate %.2f:", rate);
  double w = 1;
  for (int step = 0; step <= 20; ++step) {
    if (step % 4 == 0) std::printf("  %.4f", loss(w));
    w -= rate * slope(w);
  }
  std::printf("\n");
}

}  // namespace

int main() {
  const double w = 1, h = 0.001;
  std::printf("L(1) = %.4f\n", loss(w));
  std::printf("dL/dw by the rule        %.4f\n", slope(w));
  std::printf("dL/dw by two evaluations %.4f\n", (loss(w + h) - loss(w - h)) / (2 * h));
  std::printf("the loss after 0, 4, 8, ... steps\n");
  for (const double rate : {0.01, 0.05, 0.1, 0.22}) descend(rate);
}
