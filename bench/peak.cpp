// Measures what bounds everything else on this machine: fused multiply-adds a second, and bytes a second from memory.
//   bench_peak THREADS  prints one JSON line: GFLOP/s with the widest registers here (the most, and the median of half
//                       a second: what the machine gave at that moment, which neighbours and the clock change), the
//                       clock and how many multiply-adds that makes a cycle, GB/s of reading
// The clock is measured in another way, by a chain of integer products, so that it checks the rest: a processor of this
// kind begins one or two multiply-adds a cycle, and another number says that the measurement is wrong.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
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
  double clock = 0;             ///< GHz
};

/// Cycles a nanosecond: every product waits for the one before, three cycles on all processors with AVX2.
double clock_now() {
  constexpr int kRounds = 20000, kLatency = 3;
  std::uint64_t x = 3;
  const double begin = seconds_now();
  for (int r = 0; r < kRounds; ++r) asm volatile("imul %0, %0" : "+r"(x));
  return kRounds * double{kLatency} / (seconds_now() - begin) / 1e9;
}

// Twelve independent chains of fused multiply-adds, enough to cover the latency of two units, in registers that are
// named here: left to g++ 12, some of them lie in memory, and the rate is half of what the processor has.
#define CHAIN(size, n) "vfmadd132ps %%" size "mm12, %%" size "mm13, %%" size "mm" #n "\n\t"
#define START(size, n) "vxorps %%xmm" #n ", %%xmm" #n ", %%xmm" #n "\n\t"
#define ALL(what, size)                                                                                           \
  what(size, 0) what(size, 1) what(size, 2) what(size, 3) what(size, 4) what(size, 5) what(size, 6) what(size, 7) \
      what(size, 8) what(size, 9) what(size, 10) what(size, 11)
#define ROUNDS(size)                                                                                            \
  asm volatile("vbroadcastss %1, %%" size "mm12\n\tvbroadcastss %2, %%" size                                    \
               "mm13\n\t" ALL(START, size) "1:\n\t" ALL(CHAIN, size) "dec %0\n\tjnz 1b\n\tvzeroupper"           \
               : "+r"(rounds)                                                                                   \
               : "m"(x), "m"(y)                                                                                 \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                 "xmm11", "xmm12", "xmm13")

Rate multiply_adds(bool wide, double seconds) {
  constexpr int kRounds = 100000, kChains = 12;
  const float x = 0.999f, y = 1e-3f;
  std::vector<double> rates, clocks;
  for (const double end = seconds_now() + seconds; seconds_now() < end;) {
    long rounds = kRounds;
    const double begin = seconds_now();
    if (wide) ROUNDS("z");
    else ROUNDS("y");
    rates.push_back(kRounds * double{kChains} * (wide ? 32 : 16) / (seconds_now() - begin) / 1e9);
    clocks.push_back(clock_now());
  }
  std::sort(rates.begin(), rates.end());
  return {rates.back(), rates[rates.size() / 2], *std::max_element(clocks.begin(), clocks.end())};
}

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
    for (auto& result : flops) workers.emplace_back([&result, wide] { result = multiply_adds(wide, 0.5); });
  }
  {
    std::vector<std::jthread> workers;
    for (auto& result : bytes)
      workers.emplace_back([&result] { result = read_rate(std::vector<double>(std::size_t{16} << 20, 1.0)); });
  }
  Rate total_flops;
  double total_bytes = 0;
  for (const Rate& f : flops) total_flops.most += f.most, total_flops.median += f.median, total_flops.clock += f.clock;
  for (const double b : bytes) total_bytes += b;
  const double a_cycle = total_flops.most / total_flops.clock / (wide ? 32 : 16);
  std::printf(
      "{\"threads\":%d,\"registers\":\"%s\",\"fma_gflops\":%.1f,\"fma_gflops_median\":%.1f,\"clock_ghz\":%.2f,"
      "\"fma_a_cycle\":%.2f,\"read_gbs\":%.1f}\n",
      threads, wide ? "avx512" : "avx2", total_flops.most, total_flops.median, total_flops.clock / threads, a_cycle,
      total_bytes);
  if (std::abs(a_cycle - 1) < 0.1 || std::abs(a_cycle - 2) < 0.2) return 0;
  std::fprintf(stderr, "error: expected 1 or 2 multiply-adds a cycle, found %.2f; hint: is the machine busy?\n",
               a_cycle);
  return 1;
}
