// Replicas on emulated GPUs, joined by the stand-in for NCCL: through the code that a machine with several GPUs runs.
#include <doctest/doctest.h>

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "distributed/end_of_process.h"
#include "distributed/gpus.h"
#include "distributed/nccl_place.h"
#include "distributed/parts.h"
#include "distributed/replica_group.h"
#include "tensor/backends.h"
#include "tensor/ops.h"

using namespace bertrand;
using namespace bertrand::distributed;
using namespace bertrand::testing;
using nccl::emulation::Fault;
using nccl::emulation::inject;

extern "C" Backend* bertrand_open_cuda(const CudaOptions& options);
extern "C" cudaStream_t bertrand_cuda_stream(Backend& backend);

namespace {

constexpr double kLong = 60;  // seconds: whatever ends before that was not ended by the timeout
constexpr double kShort = 2;  // where somebody stays away until it is over

struct Waiting {
  double timeout = kLong;
  Collective* processes = nullptr;  ///< the others, which never come
};

struct Outcome {
  std::vector<std::string> thrown;  ///< by each replica; "" if it ended well
  double seconds = 0;
};

/// Runs a body on replicas 0, 1, …, each on the GPU that is named.
Outcome run_on(const std::vector<int>& gpus, const std::function<void(const Replica&)>& body,
               const Waiting& waiting = {}) {
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome{.thrown = std::vector<std::string>(gpus.size())};
  ThreadMeeting meeting(static_cast<int>(gpus.size()));
  const std::string id = *std::unique_ptr<std::string>(bertrand_nccl_id());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        const std::unique_ptr<Backend> backend(bertrand_open_cuda({.index = gpus[i]}));
        const Replica self(*backend, std::unique_ptr<Collective>(
                                         bertrand_join_nccl({meeting, static_cast<int>(i), waiting.processes, *backend,
                                                             bertrand_cuda_stream(*backend), id, waiting.timeout})));
        try {
          body(self);
        } catch (const Error& error) {
          outcome.thrown[i] = error.what();
          self.collective().abort(error.what());
        }
      } catch (const Error& error) {
        outcome.thrown[i] = error.what();
        meeting.abort("replica " + std::to_string(i) + " has failed");
      }
    });
  threads.clear();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

void sum_once(const Replica& self) {
  const Tensor x = ops::full({100}, 1, DType::f32, self.backend());
  const Addend mine{.first = self.rank(), .count = 1, .values = x};
  self.collective().all_reduce_sum({&mine, 1}, self.size(), x);
}

/// Two processes of which the other one dies.
class Dying : public SoloCollective {
 public:
  using SoloCollective::SoloCollective;
  int size() const override { return 2; }
  std::string failure_of_others() override { return ++looks > 1 ? "process 1 has died" : ""; }
  int looks = 0;
};

struct NoFault {
  ~NoFault() { inject({}); }
};

}  // namespace

TEST_CASE("sums over GPUs are close to the true ones, the same on every GPU, and with two replicas the tree's") {
  for (const int gpus : {2, 3, 4})
    for (std::int64_t parts = 1; parts <= 9; ++parts) {
      CAPTURE(gpus);
      CAPTURE(parts);
      constexpr Dim kElements = 40;
      std::mutex mutex;
      std::vector<std::vector<float>> results;
      std::vector<int> devices(static_cast<std::size_t>(gpus));
      for (int i = 0; i < gpus; ++i) devices[static_cast<std::size_t>(i)] = i;
      const Outcome outcome = run_on(devices, [&](const Replica& self) {
        const Tensor out({kElements}, DType::f32, self.backend());
        self.collective().all_reduce_sum(parts_of(self, parts, kElements), parts, out);
        const std::lock_guard lock(mutex);
        results.push_back(ops::to_host<float>(out));
      });
      for (const std::string& thrown : outcome.thrown) CHECK(thrown == "");
      REQUIRE(results.size() == devices.size());
      for (const auto& result : results) CHECK(result == results[0]);
      for (Dim e = 0; e < kElements; ++e) {
        double sum = 0;
        for (std::int64_t i = 0; i < parts; ++i) sum += static_cast<double>(part(i, e));
        CHECK(static_cast<double>(results[0][static_cast<std::size_t>(e)]) == doctest::Approx(sum).epsilon(1e-6));
        if (gpus == 2 && parts == 4) CHECK(results[0][static_cast<std::size_t>(e)] == tree(0, parts, e));
      }
    }
  CHECK(nccl::emulation::open_communicators() == 0);
}

TEST_CASE("several sums are under way while a replica goes on, and are there when it has waited for them") {
  std::atomic<int> wrong{0};
  const Outcome outcome = run_on({0, 1, 2, 3}, [&](const Replica& self) {
    // The others come later: what was started is not done, and this replica computes meanwhile.
    if (!self.first()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::vector<Tensor> sums;
    for (int i = 0; i < 5; ++i) {
      sums.push_back(ops::full({1000}, self.rank() + i, DType::f32, self.backend()));
      self.collective().start_sum({{.first = self.rank(), .count = 1, .values = sums.back()}}, 4, sums.back());
    }
    const Tensor meanwhile = ops::full({10}, 7, DType::f32, self.backend());
    wrong += ops::to_host<float>(meanwhile)[3] != 7;
    self.collective().finish_sums();
    for (int i = 0; i < 5; ++i)
      for (const float value : ops::to_host<float>(sums[static_cast<std::size_t>(i)]))
        wrong += value != static_cast<float>(6 + 4 * i);
  });
  for (const std::string& thrown : outcome.thrown) CHECK(thrown == "");
  CHECK(wrong == 0);
}

TEST_CASE("copies from and to the host do not wait for a sum of another GPU, which may wait for them") {
  std::atomic<int> wrong{0};
  const auto body = [&](const Replica& self) {
    sum_once(self);
    if (!self.first()) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the other one's sum has begun
    std::vector<Tensor> copies;
    for (int i = 0; i < 33; ++i) copies.push_back(ops::from_host(std::vector<std::int32_t>{i}, {1}, self.backend()));
    std::vector<std::function<void(void* host)>> later;
    for (int i = 0; i < 8; ++i) later.push_back(self.backend().download_later(copies[static_cast<std::size_t>(i)]));
    sum_once(self);
    for (int i = 0; i < 8; ++i) {
      std::int32_t value = -1;
      later[static_cast<std::size_t>(i)](&value);
      wrong += value != i;
    }
  };
  for (const std::string& thrown : run_on({0, 1}, body, {.timeout = kShort}).thrown) CHECK(thrown == "");
  CHECK(wrong == 0);
}

TEST_CASE("every type that gradients and losses have is summed, and bytes of any type are broadcast") {
  std::atomic<int> wrong{0};
  const Outcome outcome = run_on({0, 1, 2}, [&](const Replica& self) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      const Tensor x = ops::full({9}, self.rank() + 1, dtype, self.backend());
      const Addend mine{.first = self.rank(), .count = 1, .values = x};
      self.collective().all_reduce_sum({&mine, 1}, 3, x);
      for (const double value : ops::to_host<double>(ops::cast(x, DType::f64))) wrong += value != 6;
    }
    for (int root = 0; root < 3; ++root) {
      const Tensor x =
          ops::from_host(std::vector<std::uint8_t>(7, static_cast<std::uint8_t>(self.rank())), {7}, self.backend());
      self.collective().broadcast(x, root);
      for (const std::uint8_t value : ops::to_host<std::uint8_t>(x)) wrong += value != root;
    }
    self.collective().barrier();
  });
  for (const std::string& thrown : outcome.thrown) CHECK(thrown == "");
  CHECK(wrong == 0);
}

TEST_CASE("switches between GPUs do not add up unless the environment says so") {
  const auto value_for_nccl = [] {
    const NcclModule nccl(true);
    return std::string(getenv("NCCL_NVLS_ENABLE"));
  };
  unsetenv("NCCL_NVLS_ENABLE");
  CHECK(value_for_nccl() == "0");
  setenv("NCCL_NVLS_ENABLE", "1", 1);
  CHECK(value_for_nccl() == "1");
  unsetenv("NCCL_NVLS_ENABLE");
}

TEST_CASE("two replicas on one GPU are refused") {
  const Outcome outcome = run_on({0, 1, 1}, sum_once);
  for (const std::string& thrown : outcome.thrown) CHECK(thrown != "");
  const std::string refusal = "join (call 1): NCCL: invalid usage: Duplicate GPU detected";
  CHECK((outcome.thrown[1] == refusal || outcome.thrown[2] == refusal));
  CHECK(nccl::emulation::open_communicators() == 0);
}

TEST_CASE("a replica that never joins is missed after the timeout") {
  ThreadMeeting meeting(2);
  const std::unique_ptr<Backend> backend(bertrand_open_cuda({}));
  const std::string id = *std::unique_ptr<std::string>(bertrand_nccl_id());
  std::string thrown;
  try {
    const std::unique_ptr<Collective> collective(
        bertrand_join_nccl({meeting, 0, nullptr, *backend, bertrand_cuda_stream(*backend), id, kShort}));
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::distributed);
    thrown = error.what();
  }
  CHECK(thrown == "join (call 1): replica 1 did not come within 2 seconds");
}

TEST_CASE("a replica that stays away from a sum is named after the timeout, and the others leave") {
  std::atomic<bool> others_have_left{false};
  const auto body = [&](const Replica& self) {
    sum_once(self);
    while (self.rank() == 1 && !others_have_left) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    try {
      sum_once(self);
    } catch (...) {
      others_have_left = true;
      throw;
    }
  };
  const Outcome outcome = run_on({0, 1, 2}, body, {.timeout = kShort});
  CHECK((outcome.thrown[0] == "all_reduce_sum (call 3): replica 1 did not come within 2 seconds" ||
         outcome.thrown[2] == "all_reduce_sum (call 3): replica 1 did not come within 2 seconds"));
  CHECK(nccl::emulation::open_communicators() == 0);
}

TEST_CASE("a replica that has given up the second of two sums refuses a third") {
  std::atomic<bool> first_has_left{false};
  const auto body = [&](const Replica& self) {
    const Tensor x = ops::full({100}, 1, DType::f32, self.backend());
    const auto start = [&] { self.collective().start_sum({{.first = self.rank(), .count = 1, .values = x}}, 2, x); };
    start();
    if (self.first()) {
      start();
      CHECK_THROWS_AS(self.collective().finish_sums(), Error);
      first_has_left = true;
      start();
    }
    while (!first_has_left) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  CHECK(run_on({0, 1}, body, {.timeout = kShort}).thrown[0] == "all_reduce_sum: this replica has left the others");
}

TEST_CASE("a process that dies is noticed before the timeout, and named") {
  const std::unique_ptr<Backend> backend(bertrand_open_cuda({}));
  Dying processes(*backend);
  const Outcome outcome = run_on({0, 1}, sum_once, {.processes = &processes});
  CHECK(outcome.thrown[0] == "join (call 1): process 1 has died");
  CHECK(outcome.thrown[1] == "join (call 1): replica 0 has failed");
  CHECK(processes.looks == 2);
  CHECK(outcome.seconds < kLong);
  CHECK(nccl::emulation::open_communicators() == 0);
}

TEST_CASE("a replica that throws makes the others leave at once") {
  for (const int failing : {0, 1, 2}) {
    const Outcome outcome = run_on({0, 1, 2}, [&](const Replica& self) {
      sum_once(self);
      if (self.rank() == failing) fail(Failure::io, "the disk is full");
      sum_once(self);
    });
    const std::string failed = "): replica " + std::to_string(failing) + " has failed";
    for (int rank = 0; rank < 3; ++rank) {
      const std::string& thrown = outcome.thrown[static_cast<std::size_t>(rank)];
      if (rank == failing) CHECK(thrown == "the disk is full");
      else CHECK((thrown == "all_reduce_sum (call 2" + failed || thrown == "all_reduce_sum (call 3" + failed));
    }  // in call 2 is who has not seen yet that it is done
    CHECK(outcome.seconds < kLong);
    CHECK(nccl::emulation::open_communicators() == 0);
  }
}

TEST_CASE("an error of NCCL at any call of any replica ends all of them, and is told") {
  const NoFault reset;
  for (const int rank : {0, 2})
    for (const std::int64_t call : {0, 1, 3}) {
      CAPTURE(rank);
      CAPTURE(call);
      inject({.rank = rank, .call = call, .state = ncclRemoteError});
      const Outcome outcome = run_on({0, 1, 2}, [&](const Replica& self) {
        for (int i = 0; i < 5; ++i) sum_once(self);
      });
      for (const std::string& thrown : outcome.thrown) CHECK(thrown != "");
      CHECK(outcome.thrown[static_cast<std::size_t>(rank)] ==
            std::string(call == 0 ? "join" : "all_reduce_sum") + " (call " + std::to_string(call + 1) +
                "): NCCL: remote process exited or there was a network error");
      CHECK(outcome.seconds < kLong);
      CHECK(nccl::emulation::open_communicators() == 0);
    }
}

TEST_CASE("NCCL may take its time to join and to take a call") {
  const NoFault reset;
  for (const std::int64_t call : {0, 1}) {
    inject({.rank = 1, .call = call, .state = ncclInProgress, .polls = 500});
    const Outcome outcome = run_on({0, 1, 2}, [&](const Replica& self) { sum_once(self); });
    for (const std::string& thrown : outcome.thrown) CHECK(thrown == "");
  }
}

TEST_CASE("NCCL that stays in progress beyond the timeout is given up") {
  const NoFault reset;
  inject({.rank = 1, .call = 1, .state = ncclInProgress, .polls = 1'000'000'000});
  const Outcome outcome = run_on({0, 1, 2}, sum_once, {.timeout = kShort});
  CHECK(outcome.thrown[1] != "");
  CHECK(nccl::emulation::open_communicators() == 0);
}

TEST_CASE("replicas that come with different sizes are not left hanging") {
  const auto body = [](const Replica& self) {
    const Tensor x = ops::full({100 + self.rank()}, 1, DType::f32, self.backend());
    const Addend mine{.first = self.rank(), .count = 1, .values = x};
    self.collective().all_reduce_sum({&mine, 1}, 2, x);
  };
  const Outcome outcome = run_on({0, 1}, body, {.timeout = kShort});
  for (const std::string& thrown : outcome.thrown) CHECK(thrown != "");
  CHECK(nccl::emulation::open_communicators() == 0);
}

TEST_CASE("a replica that a call of NCCL keeps ends its process with 8 and one line after the timeout") {
  const End end = end_of([] {
    inject({.rank = 1, .call = 2, .returns = false});
    const auto body = [](const Replica& self) {
      self.collective().set_standing("step 3: ", "; last checkpoint: none");
      sum_once(self);
      sum_once(self);
    };
    run_on({0, 1}, body, {.timeout = kShort});
  });
  CHECK(end.code == 8);
  CHECK(end.said ==
        "error: step 3: all_reduce_sum (call 3): NCCL or CUDA has not returned in time; last checkpoint: none\n");
  CHECK(end.seconds > kShort);
}

TEST_CASE("a replica that a launch keeps while its sums are under way ends its process with 8 and one line") {
  const End end = end_of([] {
    const auto body = [](const Replica& self) {
      const Tensor x = ops::full({100}, 1, DType::f32, self.backend());
      self.collective().start_sum({{.first = self.rank(), .count = 1, .values = x}}, 2, x);
      while (!self.first()) ::pause();
      self.collective().finish_sums();
      sum_once(self);
    };
    run_on({0, 1}, body, {.timeout = kShort});
  });
  CHECK(end.code == 8);
  CHECK(end.said == "error: all_reduce_sum (call 2): NCCL or CUDA has not returned in time\n");
}

TEST_CASE("a replica that computes for longer than the timeout while no sum is under way is left alone") {
  const End end = end_of([] {
    const auto body = [](const Replica& self) {
      sum_once(self);
      std::this_thread::sleep_for(std::chrono::seconds(5));
      sum_once(self);
    };
    const Outcome outcome = run_on({0}, body, {.timeout = kShort});
    ::_exit(outcome.thrown[0].empty() ? 0 : 3);
  });
  CHECK(end.code == 0);
  CHECK(end.said.empty());
}
