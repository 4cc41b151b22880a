// NCCL itself, on all GPUs of the machine. One GPU shows that its calls are right, several also what they compute.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "cuda_gpu/gpu_or_skip.h"
#include "distributed/gpus.h"
#include "tensor/ops.h"

using namespace bertrand;
using namespace bertrand::testing;
using distributed::Addend;
using distributed::Collective;

namespace {

/// All that there are; none if there is none.
std::vector<std::unique_ptr<Backend>> open_gpus() {
  std::vector<std::unique_ptr<Backend>> gpus;
  gpus.push_back(gpu_or_skip({.beside_others = true}));
  if (!gpus[0]) return {};
  try {
    while (true) gpus.push_back(open_cuda({.index = static_cast<int>(gpus.size()), .beside_others = true}));
  } catch (const Error&) {  // there is no other
  }
  return gpus;
}

/// How many elements are not `expected`.
int count_wrong(const Tensor& x, double expected) {
  int wrong = 0;
  for (const double value : ops::to_host<double>(x)) wrong += value != expected;
  return wrong;
}

/// One GPU's sum waits for the others, which meanwhile copy from and to the host: more often than there are buffers.
int count_wrong_of_late_copies(Collective& collective, Backend& gpu) {
  const int rank = collective.rank(), size = collective.size();
  const auto sum_ones = [&] {
    const Tensor x = ops::full({1000}, 1, DType::f32, gpu);
    const Addend mine{.first = rank, .count = 1, .values = x};
    collective.all_reduce_sum({&mine, 1}, size, x);
    return count_wrong(x, size);
  };
  int wrong = sum_ones();
  std::this_thread::sleep_for(std::chrono::milliseconds(200 * rank));
  std::vector<Tensor> copies;
  for (int i = 0; i < 33; ++i) copies.push_back(ops::from_host(std::vector<std::int32_t>{i}, {1}, gpu));
  std::vector<std::function<void(void* host)>> later;
  for (int i = 0; i < 8; ++i) later.push_back(gpu.download_later(copies[static_cast<std::size_t>(i)]));
  wrong += sum_ones();
  for (int i = 0; i < 8; ++i) {
    std::int32_t value = -1;
    later[static_cast<std::size_t>(i)](&value);
    wrong += value != i;
  }
  return wrong;
}

int count_wrong_of_all_calls(Collective& collective, Backend& gpu) {
  const int rank = collective.rank(), size = collective.size();
  const double sum = size * (size + 1) / 2;
  int wrong = 0;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    std::vector<Tensor> sums;
    for (int i = 0; i < 4; ++i) {
      sums.push_back(ops::full({300'001}, rank + 1, dtype, gpu));
      collective.start_sum({{.first = rank, .count = 1, .values = sums.back()}}, size, sums.back());
    }
    collective.finish_sums();
    for (const Tensor& x : sums) wrong += count_wrong(x, sum);
  }
  const Tensor copied = ops::full({77}, rank, DType::f32, gpu);
  collective.broadcast(copied, size - 1);
  collective.barrier();
  return wrong + count_wrong(copied, size - 1);
}

}  // namespace

TEST_CASE("NCCL joins all GPUs of the machine, adds up every type there, copies, waits for late ones, and leaves") {
  const auto gpus = open_gpus();
  if (gpus.empty()) return;
  std::optional<distributed::NcclModule> nccl;
  try {
    nccl.emplace(false);
  } catch (const Error& error) {  // it is no part of the CUDA toolkit
    MESSAGE("SKIPPED: " << std::string(error.what()));
    return;
  }
  MESSAGE(gpus.size() << " GPUs");
  distributed::ThreadMeeting meeting(static_cast<int>(gpus.size()));
  const std::string id = nccl->new_id();
  std::atomic<int> wrong{0};
  std::vector<std::string> thrown(gpus.size());
  const auto work = [&](int thread) {
    Backend& gpu = *gpus[static_cast<std::size_t>(thread)];
    try {
      const auto collective =
          nccl->join({.meeting = meeting, .thread = thread, .backend = gpu, .id = id, .timeout = 30});
      wrong += count_wrong_of_late_copies(*collective, gpu);  // first: nothing has been copied yet
      wrong += count_wrong_of_all_calls(*collective, gpu);
    } catch (const Error& error) {
      thrown[static_cast<std::size_t>(thread)] = error.what();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < meeting.size(); ++thread) threads.emplace_back(work, thread);
  }
  for (const std::string& reason : thrown) CHECK(reason == "");
  CHECK(wrong == 0);
}
