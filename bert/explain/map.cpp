// Power iteration on the covariance: two directions need no more.
#include "bert/explain/map.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bert/tasks/metrics.h"

namespace bertrand::explain {
namespace {

using Vector = std::vector<double>;

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// a −= factor · b
void subtract(Vector& a, double factor, std::span<const double> b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= factor * b[i];
}

/// Divides by the length; a vector of zeros stays as it is.
void normalize(Vector& a) {
  const double length = std::sqrt(dot(a, a));
  if (length > 0)
    for (double& x : a) x /= length;
}

/// [n, width] without the mean of the rows.
Vector centred(std::span<const float> points, std::size_t width) {
  const std::size_t n = points.size() / width;
  Vector rows(points.begin(), points.end());
  for (std::size_t j = 0; j < width; ++j) {
    double mean = 0;
    for (std::size_t i = 0; i < n; ++i) mean += rows[i * width + j];
    mean /= static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) rows[i * width + j] -= mean;
  }
  return rows;
}

/// rowsᵀ · rows, [width, width]
Vector scatter_of(const Vector& rows, std::size_t width) {
  Vector sums(width * width);
  for (std::size_t from = 0; from < rows.size(); from += width)
    for (std::size_t a = 0; a < width; ++a)
      for (std::size_t b = 0; b < width; ++b) sums[a * width + b] += rows[from + a] * rows[from + b];
  return sums;
}

/// The direction of length 1 with the largest eigenvalue among those at right angles to `before`; zeros if the points
/// do not differ there.
Vector direction(const Vector& scatter, std::size_t width, const Vector& before) {
  constexpr int kMost = 2000;
  constexpr double kStill = 1e-20;  // of the squares of what changed
  Vector at(width);                 // no symmetry of the points is likely to be at right angles to this
  for (std::size_t j = 0; j < width; ++j) at[j] = std::sin(1.0 + static_cast<double>(j) * 1.7);
  for (int k = 0; k < kMost; ++k) {
    Vector next(width);
    for (std::size_t a = 0; a < width; ++a) next[a] = dot(std::span(scatter).subspan(a * width, width), at);
    if (!before.empty()) subtract(next, dot(next, before), before);
    normalize(next);
    subtract(at, 1, next);
    const double changed = dot(at, at);
    at = std::move(next);
    if (changed < kStill) break;
  }
  const auto largest = std::ranges::max_element(at, {}, [](double x) { return std::abs(x); });
  if (*largest < 0)
    for (double& x : at) x = -x;
  return at;
}

}  // namespace

Plane principal_plane(std::span<const float> points, std::size_t width) {
  const Vector rows = centred(points, width), scatter = scatter_of(rows, width);
  double whole = 0;
  for (std::size_t j = 0; j < width; ++j) whole += scatter[j * width + j];
  const Vector first = direction(scatter, width, {}), second = direction(scatter, width, first);
  Plane plane;
  for (std::size_t from = 0; from < rows.size(); from += width) {
    const std::span row = std::span(rows).subspan(from, width);
    plane.x.push_back(dot(row, first));
    plane.y.push_back(dot(row, second));
  }
  if (whole > 0) plane.shares = {dot(plane.x, plane.x) / whole, dot(plane.y, plane.y) / whole};
  return plane;
}

std::vector<std::vector<Near>> nearest(std::span<const float> points, std::size_t width, std::size_t count) {
  const std::size_t n = points.size() / width;
  std::vector<Vector> units;
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = points.subspan(i * width, width);
    units.emplace_back(row.begin(), row.end());
    normalize(units.back());
  }
  std::vector<std::vector<Near>> all;
  for (std::size_t i = 0; i < n; ++i) {
    Vector cosines;
    for (const Vector& unit : units) cosines.push_back(dot(units[i], unit));
    cosines[i] = -2;  // less than any: a point is not near itself
    std::vector<Near>& near = all.emplace_back();
    for (const std::size_t j : tasks::largest(cosines, std::min(count, n - 1)))
      near.push_back({.point = j, .cosine = cosines[j]});
  }
  return all;
}

}  // namespace bertrand::explain
