// Measures what bounds everything else on this machine: fused multiply-adds a second, and bytes a second from memory.
//   peak THREADS        prints one JSON line: GFLOP/s with the widest registers here (the most, and the median of half
//   a
//                       second: what the machine gave at that moment, which neighbours and the clock change), GB/s of
//                       reading
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Rate {
  double most = 0, median = 0;  ///< GFLOP/s
};

typedef float Float8 __attribute__((vector_size(32)));
typedef float Float16 __attribute__((vector_size(64)));

/// Twelve independent chains of multiply-adds (built with -ffp-contract=fast, so fused) in vectors, enough to
/// cover the latency of two units. Inlined into a function that may use the registers.
template <class Vector>
inline __attribute__((always_inline)) Rate chains(double seconds) {
  constexpr int kChains = 12, kRounds = 100000, kLanes = sizeof(Vector) / sizeof(float);
  Vector a[kChains], x, y;
  for (int i = 0; i < kLanes; ++i) x[i] = 0.999f, y[i] = 1e-3f;
  for (auto& v : a) v = x;
  std::vector<double> rates;
  for (const double end = seconds_now() + seconds; seconds_now() < end;) {
    const double begin = seconds_now();
    for (int r = 0; r < kRounds; ++r)
#pragma GCC unroll 12
      for (int i = 0; i < kChains; ++i) a[i] = a[i] * x + y;
    rates.push_back(kRounds * double{kChains} * 2 * kLanes / (seconds_now() - begin) / 1e9);
  }
  Vector total = a[0];
  for (int i = 1; i < kChains; ++i) total += a[i];
  volatile float kept = total[0];  // so that nothing above is dead
  static_cast<void>(kept);
  std::sort(rates.begin(), rates.end());
  return {rates.back(), rates[rates.size() / 2]};
}
__attribute__((target("avx2,fma"))) Rate peak_avx2(double seconds) { return chains<Float8>(seconds); }
__attribute__((target("avx512f,avx512vl,fma"))) Rate peak_avx512(double seconds) { return chains<Float16>(seconds); }

/// Reads a block far larger than the caches; returns GB/s.
double read_rate(const std::vector<double>& block) {
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const double begin = seconds_now();
    double a = 0, b = 0, c = 0, d = 0;
    for (std::size_t i = 0; i + 8 <= block.size(); i += 8)
      a += block[i], b += block[i + 2], c += block[i + 4], d += block[i + 6];
    asm volatile("" : : "x"(a + b + c + d));
    const double rate = static_cast<double>(block.size() * sizeof(double)) / (seconds_now() - begin) / 1e9;
    best = rate > best ? rate : best;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  std::vector<Rate> flops(static_cast<std::size_t>(threads));
  std::vector<double> bytes(flops.size());
  {
    std::vector<std::jthread> workers;
    for (auto& result : flops)
      workers.emplace_back([&result, wide] { result = wide ? peak_avx512(0.5) : peak_avx2(0.5); });
  }
  {
    std::vector<std::jthread> workers;
    for (auto& result : bytes)
      workers.emplace_back([&result] { result = read_rate(std::vector<double>(std::size_t{16} << 20, 1.0)); });
  }
  Rate total_flops;
  double total_bytes = 0;
  for (const Rate& f : flops) total_flops.most += f.most, total_flops.median += f.median;
  for (const double b : bytes) total_bytes += b;
  std::printf(
      "{\"threads\":%d,\"registers\":\"%s\",\"fma_gflops\":%.1f,\"fma_gflops_median\":%.1f,\"read_gbs\":%.1f}\n",
      threads, wide ? "avx512" : "avx2", total_flops.most, total_flops.median, total_bytes);
}
