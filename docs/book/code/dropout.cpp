// Dropout: its mean, and that a mask is a function of names and not of order.
#include <cstdio>
#include <numeric>
#include <vector>

#include "autograd/ops.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

constexpr std::uint64_t kSeed = 1, kStep = 7;

/// Rows of ones, dropped out with probability 0.1; the rows have these keys.
std::vector<double> dropped(const std::vector<std::int64_t>& row_keys, Dim columns, Backend& backend) {
  const auto rows = static_cast<Dim>(row_keys.size());
  const Tensor ones = ops::full({rows, columns}, 1, DType::f64, backend);
  const Dropout dropout{.threshold = 6554,  // 0.1 · 65536, rounded
                        .key = mix(kSeed, kStep),
                        .row_keys = ops::from_host(row_keys, {rows}, backend)};
  return ops::to_host<double>(ops::dropout(ones, dropout));
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 2});
  std::vector<std::int64_t> keys(1000);
  std::iota(keys.begin(), keys.end(), 0);
  const std::vector<double> y = dropped(keys, 1000, *backend);
  double sum = 0, kept = 0;
  for (const double v : y) sum += v, kept += v != 0;
  std::printf("a kept 1 becomes %.6f\n", y[0] != 0 ? y[0] : y[1]);
  std::printf("of a million: kept %.4f, mean %.4f\n", kept / 1e6, sum / 1e6);

  const std::vector<double> one_row = dropped({5}, 1000, *backend);
  const bool same = std::vector<double>(y.begin() + 5000, y.begin() + 6000) == one_row;
  std::printf("the row with key 5, drawn by itself, is the same: %s\n", same ? "yes" : "no");
}
