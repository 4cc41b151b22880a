// Groups of replicas on emulated GPUs: threads that share one, without NCCL, and processes with several each.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "distributed/parts.h"
#include "distributed/replica_group.h"
#include "distributed/thread_collective.h"
#include "tensor/backends.h"
#include "tensor/cuda/emulation/runtime.h"

using namespace bertrand;
using namespace bertrand::distributed;

extern "C" Backend* bertrand_open_cuda(const CudaOptions& options);

TEST_CASE("each replica on one GPU adds up its share of a sum in one launch however long it is") {
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < 2; ++i) backends.emplace_back(bertrand_open_cuda({}));
  ReplicaGroup group(std::move(backends));
  std::atomic<int> launches{0}, wrong{0};
  group.run([&](const Replica& self) {
    const Dim elements = 5 * 65536 + 17;  // several blocks of a CPU
    const std::vector<Addend> mine = testing::parts_of(self, 2, elements);
    self.collective().barrier();
    if (self.first()) launches = cuda::emulation::counts().launches;
    self.collective().barrier();
    self.collective().all_reduce_sum(mine, 2, mine.back().values);
    self.collective().barrier();
    if (self.first()) launches = cuda::emulation::counts().launches - launches;
    const auto values = ops::to_host<float>(mine.back().values);
    for (Dim e = 0; e < elements; ++e) wrong += values[static_cast<std::size_t>(e)] != testing::tree(0, 2, e);
  });
  CHECK(launches.load() == 2);
  CHECK(wrong.load() == 0);
}

TEST_CASE("the GPUs of all processes are one group of NCCL") {  // these processes are threads
  ThreadMeeting meeting(2);
  std::atomic<int> wrong{0};
  std::vector<std::string> thrown(2);
  const auto run_process = [&](int process) {
    const std::unique_ptr<Backend> host = open_cpu({.threads = 1});
    ThreadCollective processes({meeting, process}, *host);
    std::vector<std::unique_ptr<Backend>> gpus;
    for (int i = 0; i < 2; ++i) gpus.push_back(open_cuda({.index = 2 * process + i, .emulated = true}));
    ReplicaGroup group(std::move(gpus), {.processes = &processes, .timeout = 60, .emulated = true});
    try {
      group.run([&](const Replica& self) {
        const Tensor x = ops::full({10}, self.rank(), DType::f32, self.backend());
        const Addend mine{.first = self.rank(), .count = 1, .values = x};
        self.collective().all_reduce_sum({&mine, 1}, self.size(), x);
        for (const float value : ops::to_host<float>(x)) wrong += value != 0 + 1 + 2 + 3;
      });
    } catch (const Error& error) {
      thrown[static_cast<std::size_t>(process)] = error.what();
    }
  };
  std::jthread other(run_process, 1);
  run_process(0);
  other.join();
  for (const std::string& text : thrown) CHECK(text == "");
  CHECK(wrong == 0);
}
