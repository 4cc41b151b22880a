#include "apps/training/device.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
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

/// The card that cuda, cuda:N, or the same behind "emulated-", names; nothing where the name is none of them.
std::optional<CudaOptions> cuda_options(std::string_view name) {
  CudaOptions options;
  if (name.starts_with("emulated-")) {
    options.emulated = true;
    name.remove_prefix(9);
  }
  if (name == "cuda") return options;
  if (!name.starts_with("cuda:")) return {};
  const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), options.index);
  if (error != std::errc{} || end != name.data() + name.size() || options.index < 0) return {};
  return options;
}

}  // namespace

std::vector<std::unique_ptr<Backend>> open_backends(const Settings& settings) {
  const std::vector<std::string> names = split(settings.device);
  for (const std::string& name : names) {
    if (name != "cpu" && !cuda_options(name))
      fail(Failure::usage, "--device: expected cpu, cuda or cuda:N, got \"{}\"", name);
    if (std::count(names.begin(), names.end(), name) > 1)
      fail(Failure::usage, "--device: expected each device once, got {} twice; hint: --replicas {}", name,
           names.size());
  }
  auto card = cuda_options(names[0]);
  if (settings.precision.tf32 && !card)
    fail(Failure::usage, "--precision: expected f32, bf16, f16 or f64 on the cpu, got \"tf32\"");
  if (settings.measured_products && !card) fail(Failure::usage, "--measured-products: expected a cuda device, got {}", names[0]);
  if (card) {
    if (names.size() > 1 || settings.replicas > 1)
      fail(Failure::usage,
           "--device: expected one replica on one card, got {} on each of {}; hint: this build has no NCCL",
           settings.replicas, settings.device);
    std::vector<std::unique_ptr<Backend>> backends;
    card->tf32 = settings.precision.tf32;
    card->measured_products = settings.measured_products;
    backends.push_back(open_cuda(*card));
    return backends;
  }
  if (names.size() > 1) fail(Failure::usage, "--device: expected one kind of device, got {}", settings.device);
  const int cores = settings.threads > 0 ? settings.threads : available_cores();
  std::vector<std::unique_ptr<Backend>> backends;
  for (int rank = 0; rank < settings.replicas; ++rank) {
    const auto share = distributed::share_of(cores, rank, settings.replicas).count;
    backends.push_back(open_cpu({.threads = std::max(1, static_cast<int>(share)), .kernels = settings.cpu_kernels}));
  }
  return backends;
}

}  // namespace bertrand::training
