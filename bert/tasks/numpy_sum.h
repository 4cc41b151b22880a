// A sum of doubles in numpy's order, for figures that must agree with Python's to the last digit.
#pragma once
#include <cstddef>
#include <span>

namespace bertrand::tasks {

/// numpy.sum of a contiguous array (numpy/_core/src/umath/loops_utils.h.src, pairwise_sum): below 8 values one after
/// the other, up to 128 in eight partial sums, beyond that in halves whose lengths are multiples of 8.
inline double numpy_sum(std::span<const double> x) {
  const std::size_t n = x.size();
  if (n < 8) {
    double sum = 0;
    for (const double value : x) sum += value;
    return sum;
  }
  if (n > 128) {
    const std::size_t half = n / 2 / 8 * 8;
    return numpy_sum(x.first(half)) + numpy_sum(x.subspan(half));
  }
  double part[8];
  for (std::size_t k = 0; k < 8; ++k) part[k] = x[k];
  std::size_t i = 8;
  for (; i + 8 <= n; i += 8)
    for (std::size_t k = 0; k < 8; ++k) part[k] += x[i + k];
  double sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  for (; i < n; ++i) sum += x[i];
  return sum;
}

}  // namespace bertrand::tasks
