// The chain rule as a machine: forward it keeps what backward will need, backward it multiplies slopes from the end.
#include <cstdio>

int main() {
  const double w = 1, x = 3, y = 7;
  // forward
  const double p = w * x;  // prediction
  const double e = p - y;  // error
  const double l = e * e;  // loss
  std::printf("forward   p = %g, e = %g, L = %g\n", p, e, l);
  // backward: each line is (slope of this step) times (slope of everything after it)
  const double dl = 1;           // dL/dL
  const double de = 2 * e * dl;  // L = e²
  const double dp = 1 * de;      // e = p − y
  const double dw = x * dp;      // p = w x
  std::printf("backward  de = %g, dp = %g, dw = %g\n", de, dp, dw);

  // A value that is used twice: q = w·w, L = q + 3w. Both uses add to dw.
  double dw_twice = 0;
  dw_twice += 2 * w;  // through q: w·w has w as both factors
  dw_twice += 3;      // through 3 w
  std::printf("L = w² + 3 w at 1: dw = %g\n", dw_twice);
}
