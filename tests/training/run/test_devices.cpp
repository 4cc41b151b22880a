// What --device, --replicas and --threads become.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>

#include "support/refusal.h"
#include "tensor/backends.h"
#include "tensor/ops.h"
#include "training/run/devices.h"

using namespace bertrand;

namespace {

/// "cpu, x86-64-v3 kernels, 2 threads" ends in what a replica computes with; in any order of replicas, the most first.
std::vector<std::string> threads_of(std::optional<int> threads, int replicas,
                                    distributed::Collective* processes = nullptr) {
  training::Settings settings;
  settings.device = "cpu";
  settings.threads = threads;
  settings.replicas = replicas;
  std::mutex mutex;
  std::vector<std::string> all;
  training::open_replicas(settings, processes).run([&](const distributed::Replica& self) {
    const std::string text = self.backend().description();
    const std::lock_guard lock(mutex);
    all.push_back(text.substr(text.rfind(", ") + 2));
  });
  std::ranges::sort(all, std::greater());
  return all;
}

}  // namespace

TEST_CASE("the cores are shared out over the replicas and each has one at least") {
  using Texts = std::vector<std::string>;
  CHECK(threads_of(5, 3) == Texts{"2 threads", "2 threads", "1 thread"});
  CHECK(threads_of(2, 3) == Texts{"1 thread", "1 thread", "1 thread"});
  const int cores = available_cores();
  CHECK(threads_of({}, 1) == Texts{fmt::format("{} thread{}", cores, cores == 1 ? "" : "s")});
  // Nor has a replica none of whose many processes have a core of their own.
  struct Many : distributed::SoloCollective {
    using SoloCollective::SoloCollective;
    int processes_on_these_cores() const override { return 5000; }
  };
  const auto cpu = open_cpu({.threads = 1});
  Many processes(*cpu);
  CHECK(threads_of({}, 1, &processes) == Texts{"1 thread"});
}

TEST_CASE("products are rounded as --precision tf32 says, and those of f32 are not") {
  const auto product = [](const training::Precision& precision) {
    training::Settings settings;
    settings.device = "emulated-cuda:0";
    settings.precision = precision;
    std::vector<float> values;
    training::open_replicas(settings, nullptr).run([&](const distributed::Replica& self) {
      const auto matrix = [&](double value) { return ops::full({8, 8}, value, DType::f32, self.backend()); };
      values = ops::to_host<float>(ops::matmul(matrix(1 + 0x1p-12), matrix(1)));  // 13 bits, of which TF32 keeps 11
    });
    return values.at(0);
  };
  CHECK(product({.dtype = DType::f32}) == 8 + 0x1p-9f);
  CHECK(product({.dtype = DType::f32, .tf32 = true}) == 8);
}

TEST_CASE("devices that cannot be used together are refused") {
  const auto refusal = [](const std::string& device, int replicas = 1) {
    training::Settings settings;
    settings.device = device;
    settings.replicas = replicas;
    return support::refusal(Failure::usage, [&] { training::open_replicas(settings, nullptr); });
  };
  CHECK(refusal("tpu") == "--device: expected cpu, cuda or cuda:N, got \"tpu\"");
  CHECK(refusal("cuda:-1") == "--device: expected cpu, cuda or cuda:N, got \"cuda:-1\"");
  CHECK(refusal("cuda:1x").starts_with("--device: expected cpu, "));
  CHECK(refusal("cpu,cpu") == "--device: expected each device once, got cpu twice; hint: --device cpu --replicas 2");
  CHECK(refusal("cuda,cuda:0").starts_with("--device: expected each device once, got cuda twice"));
  for (const char* kinds : {"cpu,cuda", "cuda,cpu", "cuda:0,emulated-cuda:0", "emulated-cuda:0,cuda:1"})
    CHECK(refusal(kinds).starts_with(fmt::format("--device: expected one kind of device, got {}", kinds)));
  CHECK(refusal("cuda:0,cuda:1", 2).starts_with("--replicas: expected 1 if several GPUs work together, got 2"));
  // Nor do several processes share their GPUs out further.
  const auto cpu = open_cpu({.threads = 1});
  distributed::SoloCollective processes(*cpu);
  training::Settings settings;
  settings.device = "emulated-cuda:0";
  settings.replicas = 2;
  CHECK(support::refusal(Failure::usage, [&] {
          training::open_replicas(settings, &processes);
        }).starts_with("--replicas: expected 1 if several GPUs work together, got 2"));
}
