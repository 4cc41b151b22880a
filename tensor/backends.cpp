// Which kernels this machine runs, and how their modules are opened.
#include "tensor/backends.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <fstream>
#include <thread>

#include "tensor/module.h"

namespace bertrand {

namespace {

#if defined(__x86_64__)
/// Of which not every compiler's __builtin_cpu_supports() knows.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

/// The module of a kernel set; it is there if the set is one of runnable_cpu_kernels().
Module open_kernels(const std::string& set) {
  return Module::open("cpu_" + set, {.needed_for = "cpu", .hint_missing = "build with -DBERTRAND_CPU_KERNELS=" + set});
}

}  // namespace

const std::vector<std::string>& cpu_kernel_names() {
  static const std::vector<std::string> names = {"auto", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16"};
  return names;
}

std::vector<std::string> runnable_cpu_kernels() {
#if defined(__x86_64__)
  std::vector<std::string> sets;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    if (__builtin_cpu_supports("avx512bf16")) sets.emplace_back("x86-64-v4-bf16");
    sets.emplace_back("x86-64-v4");
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && has_f16c())
    sets.emplace_back("x86-64-v3");
  std::erase_if(sets, [](const std::string& name) { return !Module::find("cpu_" + name); });
  return sets;
#elif defined(__aarch64__)
  return {"aarch64"};
#else
  return {};
#endif
}

int available_cores() {
  cpu_set_t mask;
  int cores = sched_getaffinity(0, sizeof mask, &mask) == 0  // which fails if there are more than 1,024
                  ? CPU_COUNT(&mask)
                  : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");  // "max 100000" or "200000 100000"
  std::string quota;
  double period = 0;
  if (quota_file >> quota >> period && quota != "max" && period > 0)
    cores = std::min(cores, std::max(1, static_cast<int>(std::stod(quota) / period + 0.5)));
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
    fail(Failure::usage, "--cpu-kernels: this processor runs {}, got \"{}\"", fmt::join(sets, " and "), kernels);
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
