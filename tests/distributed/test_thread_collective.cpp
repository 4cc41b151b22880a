#include <doctest/doctest.h>

#include <new>
#include <thread>

#include "distributed/replica_group.h"
#include "distributed/thread_collective.h"
#include "tensor/backends.h"
#include "tensor/ops.h"

using namespace bertrand;
using namespace bertrand::distributed;

namespace {

/// Stands for the other processes of a run, which take their time and bring nothing.
class SlowProcesses : public SoloCollective {
 public:
  using SoloCollective::SoloCollective;
  void all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    SoloCollective::all_reduce_sum(mine, parts, out);
  }
};

/// What each of the threads throws that do `work(thread)` in one call.
std::vector<std::string> thrown_in_call(int threads, const std::function<void(ThreadMeeting&, int)>& work) {
  ThreadMeeting meeting(threads);
  std::vector<std::string> thrown(static_cast<std::size_t>(threads));
  std::vector<std::jthread> running;
  for (int thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      meeting.arrive();
      try {
        work(meeting, thread);
      } catch (...) {
        meeting.fail(std::current_exception());
      }
      try {
        if (const auto failure = meeting.depart()) std::rethrow_exception(failure);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(thread)] = error.what();
      }
    });
  running.clear();
  return thrown;
}

}  // namespace

TEST_CASE("a thread without memory before one works for all makes all threads throw and nothing is done") {
  for (int failing = 0; failing < 3; ++failing) {
    bool done = false;
    const auto thrown = thrown_in_call(3, [&](ThreadMeeting& meeting, int thread) {
      if (thread == failing) throw std::bad_alloc();
      meeting.let_one(thread == 0, [&] { done = true; });
    });
    for (const std::string& text : thrown) CHECK(text == "std::bad_alloc");
    CHECK_FALSE(done);
  }
}

TEST_CASE("what the one that works for all throws is thrown by all and so is a failure after it") {
  const auto in_work = thrown_in_call(3, [&](ThreadMeeting& meeting, int thread) {
    meeting.let_one(thread == 1, [] { fail(Failure::distributed, "the cable is cut"); });
  });
  for (const std::string& text : in_work) CHECK(text == "the cable is cut");
  const auto after = thrown_in_call(3, [&](ThreadMeeting& meeting, int thread) {
    meeting.let_one(thread == 1, [] {});
    if (thread == 2) throw std::bad_alloc();
  });
  for (const std::string& text : after) CHECK(text == "std::bad_alloc");
}

TEST_CASE("a sum between processes frees no memory of a replica in its own thread") {  // shown by ThreadSanitizer
  const auto host = open_cpu({.threads = 1});
  SlowProcesses processes(*host);
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < 2; ++i) backends.push_back(open_cpu({.threads = 1}));
  ReplicaGroup replicas(std::move(backends), {.processes = &processes});
  CHECK_THROWS_WITH(replicas.run([](const Replica& self) {
    for (int i = 0; i < 3; ++i) {
      const Tensor x = ops::full({1000 + i}, 1, DType::f32, self.backend());
      self.collective().start_sum({{.first = self.rank(), .count = 1, .values = x}}, 2, x);
    }
    // The sums are under way, and only they hold their tensors.
    for (int i = 0; i < 2000; ++i) {
      ops::full({1000 + i % 3}, 1, DType::f32, self.backend());
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    fail(Failure::numerics, "op mse: forward: element 0 is not finite");
  }),
                    "op mse: forward: element 0 is not finite");
}
