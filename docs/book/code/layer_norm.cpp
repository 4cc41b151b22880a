// Layer normalisation of one row of four numbers: by plain loops, by `Lanes`, by CUDA.
#include "both_devices.h"

using book::Row;

namespace {

constexpr double kEpsilon = 1e-12;

struct Normalized {
  Row y, x_hat;
  double sigma = 0;
};

Normalized layer_norm(const Row& x, const Row& gamma, const Row& beta) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / n;
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  Normalized out{.sigma = std::sqrt(variance + kEpsilon)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.x_hat.push_back((x[i] - mean) / out.sigma);
    out.y.push_back(out.x_hat[i] * gamma[i] + beta[i]);
  }
  return out;
}

Row layer_norm_backward(const Normalized& saved, const Row& gamma, const Row& dy) {
  const auto n = static_cast<double>(dy.size());
  double mean_dx_hat = 0, mean_product = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    mean_dx_hat += dy[i] * gamma[i] / n;
    mean_product += dy[i] * gamma[i] * saved.x_hat[i] / n;
  }
  Row dx;
  for (std::size_t i = 0; i < dy.size(); ++i)
    dx.push_back((dy[i] * gamma[i] - mean_dx_hat - saved.x_hat[i] * mean_product) / saved.sigma);
  return dx;
}

}  // namespace

int main() {
  using namespace bertrand;
  const Row x{1, 3, 5, 7}, gamma{1, 1, 2, 2}, beta{0, 0, 0, 1}, dy{1, 0, 0, -1};
  const Normalized saved = layer_norm(x, gamma, beta);
  Row dgamma;
  for (std::size_t i = 0; i < dy.size(); ++i) dgamma.push_back(dy[i] * saved.x_hat[i]);
  book::compare({"layer norm", "dx", "dgamma", "dbeta"},
                {saved.y, layer_norm_backward(saved, gamma, dy), dgamma, /*dbeta*/ dy},
                {{x, {1, 4}}, {gamma, {4}}, {beta, {4}}}, dy,
                [](const std::vector<Variable>& in) { return layer_norm(in[0], in[1], in[2], kEpsilon); });
}
