// What a vector of `Lanes` is, and how a row of four numbers goes through it.
#include "tensor/cpu/rows.h"

#include <cstdio>

using namespace bertrand;
using bertrand::cpu::Lanes;

int main() {
  std::printf("a vector holds %d floats or %d doubles\n", Lanes<float>::kCount, Lanes<double>::kCount);

  const double x[4] = {2, 1, 0, -1};
  double y[4];
  const double most = cpu::row_max(x, 4);
  const Lanes<double> offset(most), inverse(1 / cpu::row_exp_sum(x, 4, most));
  cpu::for_lanes<double>(
      4, [&](Dim c, Dim n) { (exp(Lanes<double>::load(x + c, n) - offset) * inverse).store(y + c, n); });
  std::printf("softmax by Lanes: %.6f %.6f %.6f %.6f\n", y[0], y[1], y[2], y[3]);
}
