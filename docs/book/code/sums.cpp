// Why the order of a sum matters, and a sum whose order does not depend on how many threads there are.
#include <cmath>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

namespace {

using Numbers = std::vector<float>;

/// Numbers between 0 and 1 that anyone can make.
Numbers numbers(std::size_t count) {
  Numbers x(count);
  unsigned seed = 1;
  for (float& v : x) v = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) / (1 << 24);
  return x;
}

float in_order(const float* x, std::size_t count) {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

/// Calls part(0), part(1), … on `threads` threads.
void on_threads(std::size_t parts, std::size_t threads, const std::function<void(std::size_t)>& part) {
  std::vector<std::jthread> running;
  for (std::size_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (std::size_t p = t; p < parts; p += threads) part(p);
    });
}

/// As one thinks of it first: each thread sums its share, then the shares are added.
float by_shares(const Numbers& x, std::size_t threads) {
  Numbers shares(threads);
  on_threads(threads, threads, [&](std::size_t t) {
    const std::size_t begin = t * x.size() / threads, end = (t + 1) * x.size() / threads;
    shares[t] = in_order(&x[begin], end - begin);
  });
  return in_order(shares.data(), threads);
}

/// Blocks of a fixed size, each summed by any thread, then a tree of pairs.
float by_tree(const Numbers& x, std::size_t threads) {
  constexpr std::size_t kBlock = 64;
  Numbers sums((x.size() + kBlock - 1) / kBlock);
  on_threads(sums.size(), threads, [&](std::size_t block) {
    sums[block] = in_order(&x[block * kBlock], std::min(kBlock, x.size() - block * kBlock));
  });
  for (std::size_t step = 1; step < sums.size(); step *= 2)
    for (std::size_t i = 0; i + step < sums.size(); i += 2 * step) sums[i] += sums[i + step];
  return sums[0];
}

}  // namespace

int main() {
  const float large = 100'000'000, one = 1;
  std::printf("(1e8 + 1) - 1e8 = %g, (1e8 - 1e8) + 1 = %g\n", (large + one) - large, (large - large) + one);

  const Numbers x = numbers(1'000'000);
  double exact = 0;
  for (const float v : x) exact += static_cast<double>(v);
  std::printf("a million numbers, in f64: %.4f\n", exact);
  for (const std::size_t threads : {1, 2, 3, 4})
    std::printf("%zu threads: by shares %.4f, by a tree %.4f\n", threads, by_shares(x, threads), by_tree(x, threads));
}
