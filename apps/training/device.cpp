#include "apps/training/device.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "distributed/share.h"
#include "tensor/backends.h"

namespace bertrand::training {

namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = list.find(',', begin);
    names.push_back(list.substr(begin, comma - begin));
    if (comma == std::string::npos) return names;
    begin = comma + 1;
  }
}

bool is_cuda(const std::string& name) {
  if (name == "cuda") return true;
  if (!name.starts_with("cuda:")) return false;
  int index = 0;
  const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), index);
  return error == std::errc{} && end == name.data() + name.size() && index >= 0;
}

}  // namespace

std::vector<std::unique_ptr<Backend>> open_backends(const Settings& settings) {
  const std::vector<std::string> names = split(settings.device);
  for (const std::string& name : names) {
    if (name != "cpu" && !is_cuda(name))
      fail(Failure::usage, "--device: expected cpu, cuda or cuda:N, got \"{}\"", name);
    if (std::count(names.begin(), names.end(), name) > 1)
      fail(Failure::usage, "--device: expected each device once, got {} twice; hint: --replicas {}", name,
           names.size());
  }
  for (const std::string& name : names)
    if (name != "cpu")
      fail(Failure::usage,
           "--device: {}: libbertrand_cuda.so not found beside the program; hint: this build has no CUDA module", name);
  if (settings.precision.tf32)
    fail(Failure::usage, "--precision: expected f32, bf16, f16 or f64 on cpu, got \"tf32\"; hint: some GPUs have it");
  const int cores = settings.threads > 0 ? settings.threads : available_cores();
  std::vector<std::unique_ptr<Backend>> backends;
  for (int rank = 0; rank < settings.replicas; ++rank) {
    const auto share = distributed::share_of(cores, rank, settings.replicas).count;
    backends.push_back(open_cpu({.threads = std::max(1, static_cast<int>(share)), .kernels = settings.cpu_kernels}));
  }
  return backends;
}

}  // namespace bertrand::training
