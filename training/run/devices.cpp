#include "training/run/devices.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "distributed/share.h"
#include "io/numbers.h"
#include "io/split.h"
#include "tensor/backends.h"

namespace bertrand::training {
namespace {

/// The GPU that cuda, cuda:N, or the same after "emulated-", names; nothing if the name is none of them.
std::optional<CudaOptions> cuda_options(std::string_view name) {
  CudaOptions options;
  constexpr std::string_view kEmulated = "emulated-", kNumbered = "cuda:";
  if (name.starts_with(kEmulated)) {
    options.emulated = true;
    name.remove_prefix(kEmulated.size());
  }
  if (name == "cuda") return options;
  if (!name.starts_with(kNumbered)) return {};
  const auto index = io::number_in<int>(name.substr(kNumbered.size()));
  if (!index || *index < 0) return {};
  options.index = *index;
  return options;
}

/// Whether both name the same: cuda is cuda:0.
bool same_device(const std::string& a, const std::string& b) {
  const auto gpu = cuda_options(a), other = cuda_options(b);
  return a == b || (gpu && other && gpu->index == other->index && gpu->emulated == other->emulated);
}

/// Refuses devices that make no sense, or not together.
void check_devices(const Settings& settings, const std::vector<std::string>& names, bool several_processes) {
  for (const std::string& name : names) {
    if (name != "cpu" && !cuda_options(name))
      fail(Failure::usage, "--device: expected cpu, cuda or cuda:N, got \"{}\"", name);
    const auto gpu = cuda_options(name), first = cuda_options(names[0]);
    if (std::ranges::count_if(names, [&](const std::string& other) { return same_device(name, other); }) > 1)
      fail(Failure::usage, "--device: expected each device once, got {} twice; hint: --device {} --replicas {}", name,
           name, names.size());
    if (gpu.has_value() != first.has_value() || (gpu && gpu->emulated != first->emulated))
      fail(Failure::usage, "--device: expected one kind of device, got {}; hint: replicas wait for the slowest",
           settings.device);
  }
  if (settings.replicas > 1 && (names.size() > 1 || (several_processes && names[0] != "cpu")))
    fail(Failure::usage, "--replicas: expected 1 if several GPUs work together, got {}; hint: --micro-batch-size",
         settings.replicas);
  if (settings.precision.tf32 && names[0] == "cpu")
    fail(Failure::usage, "--precision: expected f32, bf16, f16 or f64 on the cpu, got \"tf32\"");
  if (settings.measured_products && names[0] == "cpu")
    fail(Failure::usage, "--measured-products: expected a cuda device, got {}", names[0]);
}

}  // namespace

int replicas_of_process(const Settings& settings) {
  return settings.replicas * static_cast<int>(io::comma_list(settings.device).size());
}

distributed::ReplicaGroup open_replicas(const Settings& settings, distributed::Collective* processes) {
  const std::vector<std::string> names = io::comma_list(settings.device);
  check_devices(settings, names, processes != nullptr);
  const int sharers = processes ? processes->processes_on_these_cores() : 1;
  const int cores = settings.threads.value_or(available_cores() / sharers);
  const int replicas = replicas_of_process(settings);
  std::vector<std::unique_ptr<Backend>> backends;
  for (int rank = 0; rank < replicas; ++rank) {
    if (auto gpu = cuda_options(names[static_cast<std::size_t>(rank) % names.size()])) {
      gpu->beside_others = names.size() > 1;
      gpu->tf32 = settings.precision.tf32;
      gpu->measured_products = settings.measured_products;
      backends.push_back(open_cuda(*gpu));
      continue;
    }
    const auto share = distributed::share_of(cores, rank, replicas).count;
    backends.push_back(open_cpu({.threads = std::max(1, static_cast<int>(share)), .kernels = settings.cpu_kernels}));
  }
  const auto gpu = cuda_options(names[0]);
  return {std::move(backends),
          {.processes = processes, .timeout = settings.collective_timeout, .emulated = gpu && gpu->emulated}};
}

}  // namespace bertrand::training
