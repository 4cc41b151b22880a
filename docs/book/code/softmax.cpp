// Softmax and cross entropy of one row of four numbers: by plain loops, by `Lanes`, by CUDA.
#include <algorithm>

#include "both_devices.h"

using book::Row;

namespace {

Row softmax(const Row& x) {
  const double most = *std::max_element(x.begin(), x.end());
  Row y;
  double total = 0;
  for (const double v : x) total += std::exp(v - most);
  for (const double v : x) y.push_back(std::exp(v - most) / total);
  return y;
}

Row softmax_backward(const Row& y, const Row& dy) {
  double dot = 0;
  for (std::size_t i = 0; i < y.size(); ++i) dot += y[i] * dy[i];
  Row dx;
  for (std::size_t i = 0; i < y.size(); ++i) dx.push_back(y[i] * (dy[i] - dot));
  return dx;
}

/// −log softmax(x)[label], and its gradient
double cross_entropy(const Row& x, std::size_t label, Row& dx) {
  dx = softmax(x);
  const double loss = -std::log(dx[label]);
  dx[label] -= 1;
  return loss;
}

void far_from_zero() {
  const Row x{1000, 999};
  const double plain = std::exp(x[0]) / (std::exp(x[0]) + std::exp(x[1]));
  std::printf("softmax(1000, 999): without the maximum %s, with it %.6f\n", std::isnan(plain) ? "NaN" : "a number",
              softmax(x)[0]);
}

}  // namespace

int main() {
  using namespace bertrand;
  const Row x{2, 1, 0, -1}, dy{1, 0, 0, -1};
  const Row y = softmax(x);
  book::compare({"softmax", "dx"}, {y, softmax_backward(y, dy)}, {{x, {4}}}, dy,
                [](const std::vector<Variable>& in) { return softmax(in[0]); });

  Row dx;
  const double loss = cross_entropy(x, 1, dx);
  book::compare(
      {"cross entropy, label 1", "dx"}, {{loss}, dx}, {{x, {1, 4}}}, {1}, [](const std::vector<Variable>& in) {
        const std::vector<std::int32_t> labels{1};
        return softmax_cross_entropy(in[0], ops::from_host(labels, {1}, in[0].value().backend()), /*denominator=*/1);
      });
  far_from_zero();
}
