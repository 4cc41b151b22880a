// Points of many dimensions on a plane, and which of them lie near each other.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace bertrand::explain {

/// Principal component analysis: the two directions in which the points differ most.
struct Plane {
  std::vector<double> x, y;        ///< of each point, from the mean of all
  std::array<double, 2> shares{};  ///< of the whole variance, from 0 to 1
};
/// `points` is [n, width]. The directions have the sign with which their largest number is positive.
Plane principal_plane(std::span<const float> points, std::size_t width);

struct Near {
  std::size_t point;
  double cosine;
};
/// For each point the `count` others with the largest cosine, the nearest first, of equals the first.
std::vector<std::vector<Near>> nearest(std::span<const float> points, std::size_t width, std::size_t count);

}  // namespace bertrand::explain
