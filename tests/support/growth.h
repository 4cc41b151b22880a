// How the time of some work grows with its size: on a slow machine as on a fast one.
#pragma once
#include <algorithm>
#include <ctime>
#include <limits>

namespace support {

/// How many times as long work(4 · size) computes as work(size): about 4 if the time is linear, 16 if it grows with the
/// square. The least of three times counts.
template <class Work>
double growth_by_four(int size, const Work& work) {
  const auto time_of = [&](int n) {
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 3; ++i) {
      const std::clock_t begin = std::clock();
      work(n);
      least = std::min(least, std::clock() - begin);
    }
    return static_cast<double>(least);
  };
  const double small = time_of(size);
  return time_of(4 * size) / std::max(small, 1.0);
}

}  // namespace support
