// Which kernels this machine runs, and how their modules are opened.
#include "tensor/backends.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include "tensor/module.h"

namespace bertrand {

namespace {

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};
Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);  // zeros if there is no such leaf
  return r;
}

/// Not every compiler's __builtin_cpu_supports() knows F16C.
bool has_f16c() { return (cpuid(1).c & bit_F16C) != 0; }

/// AVX512_BF16 multiplies bf16 at twice the rate of fused multiply-adds on AMD's processors, at half of it on Intel's.
bool bf16_pairs_are_fast() { return cpuid(0).b != signature_INTEL_ebx; }

/// Why this process may not use the tiles of AMX; empty if it may. Asks the kernel for them, once: what it grants is
/// for all threads, and what other programs have on their stacks for signals may be too small for it.
const std::string& why_no_tiles() {
  static const std::string reason = []() -> std::string {
    constexpr unsigned kTile = 1u << 24, kBf16 = 1u << 22, kXsave = 1u << 27, kTileState = 3u << 17;
    if ((cpuid(7).d & (kTile | kBf16)) != (kTile | kBf16)) return "this processor has no AMX for bf16";
    if ((cpuid(1).c & kXsave) == 0) return "the system does not save the processor's extended state";
    unsigned saved = 0, high = 0;
    asm volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & kTileState) != kTileState) return "the system does not save the tiles of AMX";
    // Some virtual machines announce AMX and no palette of it.
    const Registers palette = cpuid(0x1d, 1);
    if (cpuid(0x1d).a < 1 || palette.a >> 16 != 1024 || palette.b != (8u << 16 | 64) || (palette.c & 0xffff) != 16)
      return "the processor's AMX has not eight tiles of 16 rows of 64 bytes";
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of Linux 5.16
    if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0)
      return fmt::format("Linux refused the tiles of AMX: {}", std::strerror(errno));
    return "";
  }();
  return reason;
}
#else
const std::string& why_no_tiles() {
  static const std::string reason = "this processor has no AMX";
  return reason;
}
#endif

/// The module of a kernel set; it is there if the set is one of runnable_cpu_kernels().
Module open_kernels(const std::string& set) {
  return Module::open("cpu_" + set, {.needed_for = "cpu", .hint_missing = "build with -DBERTRAND_CPU_KERNELS=" + set});
}

}  // namespace

const std::vector<std::string>& cpu_kernel_names() {
  static const std::vector<std::string> names = {"auto", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16", "x86-64-v4-amx"};
  return names;
}

std::vector<std::string> runnable_cpu_kernels() {
#if defined(__x86_64__)
  std::vector<std::string> sets;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    if (why_no_tiles().empty()) sets.emplace_back("x86-64-v4-amx");
    sets.emplace_back("x86-64-v4");
    if (__builtin_cpu_supports("avx512bf16")) sets.insert(sets.end() - bf16_pairs_are_fast(), "x86-64-v4-bf16");
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && has_f16c())
    for (const char* set : {"x86-64-v3", "emulated-pairs", "emulated-tiles"}) sets.emplace_back(set);
  std::erase_if(sets, [](const std::string& name) { return !Module::find("cpu_" + name); });
  return sets;
#elif defined(__aarch64__)
  return {"aarch64"};
#else
  return {};
#endif
}

int available_cores(const ControlGroups& groups) {
  cpu_set_t mask;
  int cores = sched_getaffinity(0, sizeof mask, &mask) == 0  // which fails if there are more than 1,024
                  ? CPU_COUNT(&mask)
                  : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for_each_control_group(groups, "cpu", [&](const std::filesystem::path& group) {
    std::ifstream both(group / "cpu.max"), of_time(group / "cpu.cfs_quota_us"), of_period(group / "cpu.cfs_period_us");
    double quota = 0, period = 0;  // "200000 100000", or "max 100000"; in version 1 two files, and -1
    if ((both >> quota >> period || (of_time >> quota && of_period >> period)) && quota > 0 && period > 0)
      cores = static_cast<int>(std::clamp(std::round(quota / period), 1.0, static_cast<double>(cores)));
  });
  return cores;
}

std::unique_ptr<Backend> open_cpu(const CpuOptions& options) {
  const std::vector<std::string> sets = runnable_cpu_kernels();
  if (sets.empty())
    fail(Failure::usage,
         "cpu: expected kernels that this processor runs, and at least AVX2 and FMA, found no such module in {}; hint: "
         "build with -DBERTRAND_CPU_KERNELS=native",
         Module::folders());
  const std::string kernels = options.kernels == "auto" ? sets.front() : options.kernels;
  if (std::find(sets.begin(), sets.end(), kernels) == sets.end())
    fail(Failure::usage, "--cpu-kernels: expected one of: {}; got {}{}", fmt::join(sets, ", "), kernels,
         kernels == "x86-64-v4-amx" && !why_no_tiles().empty() ? ": " + why_no_tiles() : "");
  auto* const open = open_kernels(kernels).function<Backend*(int threads)>("bertrand_open_cpu");
  return std::unique_ptr<Backend>(open(options.threads > 0 ? options.threads : available_cores()));
}

std::unique_ptr<Backend> open_cuda(const CudaOptions& options) {
  const Module module = Module::open(
      options.emulated ? "cuda_emulated" : "cuda",
      {.failure = Failure::usage,
       .needed_for = "--device cuda",
       .hint_missing = options.emulated ? "build with -DBERTRAND_TESTS=ON" : "build with -DBERTRAND_CUDA=ON",
       .hint_broken = "are the CUDA toolkit's libraries installed?"});
  return std::unique_ptr<Backend>(module.function<Backend*(const CudaOptions&)>("bertrand_open_cuda")(options));
}

}  // namespace bertrand
