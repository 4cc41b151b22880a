#include "tensor/backends.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace bertrand {

Storage::Storage(Backend& backend, std::size_t bytes)
    : backend_(backend), bytes_(bytes), data_(backend.allocate(bytes)) {}
Storage::~Storage() { backend_.deallocate(data_, bytes_); }

namespace {

/// Modules lie beside the program.
std::string module_path(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / ("libbertrand_" + name + ".so")).string();
}

void* open_module(const std::string& name) {
  const std::string path = module_path(name);
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) fail(Failure::io, "{}: kernels: cannot be loaded: {}", path, dlerror());
  return module;
}

}  // namespace

std::vector<std::string> runnable_cpu_kernels() {
#if defined(__x86_64__)
  std::vector<std::string> sets;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    if (__builtin_cpu_supports("avx512bf16")) sets.emplace_back("x86-64-v4-bf16");
    sets.emplace_back("x86-64-v4");
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("f16c"))
    sets.emplace_back("x86-64-v3");
  std::erase_if(sets, [](const std::string& name) { return !std::filesystem::exists(module_path("cpu_" + name)); });
  return sets;
#elif defined(__aarch64__)
  return {"aarch64"};
#else
  return {};
#endif
}

int available_cores() {
  cpu_set_t mask;
  int cores = sched_getaffinity(0, sizeof mask, &mask) == 0  // which fails where there are more than 1,024
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
    fail(Failure::usage, "cpu: no kernels for this processor: expected at least {}, and a processor with AVX2 and FMA",
         module_path("cpu_x86-64-v3"));
  const std::string kernels = options.kernels == "auto" ? sets.front() : options.kernels;
  if (std::find(sets.begin(), sets.end(), kernels) == sets.end())
    fail(Failure::usage, "--cpu-kernels: this processor runs {}, got \"{}\"", fmt::join(sets, " and "), kernels);
  using Open = Backend* (*)(int threads);
  const auto open = reinterpret_cast<Open>(dlsym(open_module("cpu_" + kernels), "bertrand_open_cpu"));
  if (!open)
    fail(Failure::io, "{}: kernels: expected the function bertrand_open_cpu; built from another version?",
         module_path("cpu_" + kernels));
  return std::unique_ptr<Backend>(open(options.threads > 0 ? options.threads : available_cores()));
}

std::unique_ptr<Backend> open_cuda(const CudaOptions& options) {
  const std::string name = options.emulated ? "cuda_emulated" : "cuda", path = module_path(name);
  if (!std::filesystem::exists(path))
    fail(Failure::usage, "--device cuda: libbertrand_{}.so not found beside the program; hint: build with -D{}=ON",
         name, options.emulated ? "BERTRAND_TESTS" : "BERTRAND_CUDA");
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) fail(Failure::usage, "--device cuda: {}; hint: are the CUDA toolkit's libraries installed?", dlerror());
  using Open = Backend* (*)(const CudaOptions& options);
  const auto open = reinterpret_cast<Open>(dlsym(module, "bertrand_open_cuda"));
  if (!open)
    fail(Failure::io, "{}: kernels: expected the function bertrand_open_cuda; built from another version?", path);
  return std::unique_ptr<Backend>(open(options));
}

}  // namespace bertrand
