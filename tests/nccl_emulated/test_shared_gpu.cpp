// Replicas that share one emulated GPU: threads that add up each other's gradients there, without NCCL.
#include <doctest/doctest.h>

#include <atomic>

#include "distributed/parts.h"
#include "distributed/replica_group.h"
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
