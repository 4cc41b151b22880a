#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <limits>
#include <stdexcept>
#include <thread>

#include "distributed/agreement.h"
#include "distributed/exchange.h"
#include "distributed/parts.h"
#include "distributed/replica_group.h"
#include "io/machine.h"
#include "io/signals.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::distributed;
using namespace bertrand::testing;

namespace {

ReplicaGroup group_of(int replicas) {
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < replicas; ++i) backends.push_back(open_cpu({.threads = 1 + i % 2}));
  return ReplicaGroup(std::move(backends));
}

/// The failure of a run and what each replica threw; empty if it threw nothing.
struct Failures {
  std::string reported;
  std::vector<std::string> thrown;
};

Failures failures_of(ReplicaGroup& group, const std::function<void(const Replica&)>& body) {
  Failures failures{.reported = "", .thrown = std::vector<std::string>(static_cast<std::size_t>(group.size()))};
  try {
    group.run([&](const Replica& self) {
      try {
        body(self);
      } catch (const Error& error) {
        failures.thrown[static_cast<std::size_t>(self.rank())] = error.what();
        throw;
      }
    });
  } catch (const Error& error) {
    failures.reported = error.what();
  }
  return failures;
}

}  // namespace

TEST_CASE("replicas add up their parts in the one tree, however many there are") {
  for (int replicas = 1; replicas <= 5; ++replicas) {
    ReplicaGroup group = group_of(replicas);
    for (std::int64_t parts = 1; parts <= 9; ++parts) {
      std::atomic<int> wrong{0};
      group.run([&](const Replica& self) {
        for (const Dim elements : {Dim{1}, Dim{40}}) {
          const Tensor out({elements}, DType::f32, self.backend());
          self.collective().all_reduce_sum(parts_of(self, parts, elements), parts, out);
          const auto values = ops::to_host<float>(out);
          for (Dim e = 0; e < elements; ++e) wrong += values[static_cast<std::size_t>(e)] != tree(0, parts, e);
        }
      });
      CHECK_MESSAGE(wrong == 0, replicas, " replicas, ", parts, " parts");
    }
  }
}

TEST_CASE("sums longer than a block are whole, and out may be the last addend") {
  ReplicaGroup group = group_of(3);
  std::atomic<int> wrong{0};
  group.run([&](const Replica& self) {
    const Dim elements = 3 * 65536 + 17;
    const std::vector<Addend> mine = parts_of(self, 3, elements);
    self.collective().all_reduce_sum(mine, 3, mine.back().values);
    const auto values = ops::to_host<float>(mine.back().values);
    for (Dim e = 0; e < elements; ++e) wrong += values[static_cast<std::size_t>(e)] != tree(0, 3, e);
  });
  CHECK(wrong == 0);
}

TEST_CASE("a broadcast gives everybody the bits of the root") {
  ReplicaGroup group = group_of(3);
  const std::vector<float> bits{-0.0f, std::numeric_limits<float>::quiet_NaN(), 1e-40f, 3.0f};
  std::atomic<int> wrong{0};
  group.run([&](const Replica& self) {
    for (int root = 0; root < self.size(); ++root) {
      const Tensor x = self.rank() == root ? ops::from_host(bits, {4}, self.backend())
                                           : ops::full({4}, 7, DType::f32, self.backend());
      self.collective().broadcast(x, root);
      const auto values = ops::to_host<float>(x);
      for (std::size_t i = 0; i < 4; ++i)
        wrong += std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>(bits[i]);
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("numbers, decisions, texts and shares reach every replica") {
  for (int replicas = 1; replicas <= 4; ++replicas) {
    ReplicaGroup group = group_of(replicas);
    std::atomic<int> wrong{0};
    group.run([&](const Replica& self) {
      wrong += sum(self, self.rank() + 1) != replicas * (replicas + 1) / 2;
      wrong += any(self, self.rank() == self.size() - 1) != true;
      wrong += any(self, false) != false;
      wrong += broadcast(self, self.first() ? "the first's" : "another") != "the first's";
      wrong += broadcast(self, self.first() ? "" : "another") != "";
      wrong += broadcast_value(self, self.rank() + 5) != 5;
      for (const std::int64_t items : {0, 1, 3, 7}) {
        const auto begin_of = [](std::int64_t item) { return item * (item + 1); };  // item i has 2 (i + 1) values
        std::vector<double> values(static_cast<std::size_t>(begin_of(items)), -1);
        const Share mine = share_of(items, self.rank(), self.size());
        for (std::int64_t i = begin_of(mine.first); i < begin_of(mine.end()); ++i)
          values[static_cast<std::size_t>(i)] = static_cast<double>(i * i);
        gather<double>(self, values, items, begin_of);
        for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] != static_cast<double>(i * i);
        std::vector<std::int64_t> pairs(static_cast<std::size_t>(2 * items), -1);
        for (std::int64_t i = 2 * mine.first; i < 2 * mine.end(); ++i) pairs[static_cast<std::size_t>(i)] = i;
        gather<std::int64_t>(self, pairs, items);
        for (std::size_t i = 0; i < pairs.size(); ++i) wrong += pairs[i] != static_cast<std::int64_t>(i);
        std::int64_t next = mine.first;
        wrong += !work_on_share(self, items, 2, [&](std::int64_t first, std::int64_t end) {
          wrong += first != next || end <= first || end > first + 2;
          next = end;
        });
        wrong += next != mine.end();
      }
    });
    CHECK_MESSAGE(wrong == 0, replicas, " replicas");
  }
}

TEST_CASE("a replica that is asked to stop waits for a part of another's share, not for all of it") {
  const pid_t child = ::fork();
  if (child == 0) {
    io::catch_stop_signals();
    ReplicaGroup group = group_of(2);
    std::atomic<int> parts{0};
    group.run([&](const Replica& self) {
      const bool all = work_on_share(self, 100, 1, [&](std::int64_t, std::int64_t) {
        if (self.first()) std::raise(SIGTERM);
        ++parts;
      });
      if (all) parts = 100;
    });
    ::_exit(parts);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 2);  // one of each
}

TEST_CASE("replicas that work apart wait for each other, and what one throws ends all") {
  for (int replicas = 1; replicas <= 3; ++replicas) {
    ReplicaGroup group = group_of(replicas);
    std::atomic<int> ended{0}, wrong{0};
    group.run([&](const Replica& self) {
      work_apart(self.collective(), self.backend(), [&] {
        if (self.first()) std::this_thread::sleep_for(std::chrono::milliseconds(600));
        ++ended;
      });
      wrong += ended != replicas;
    });
    CHECK(wrong == 0);
    const Failures failures = failures_of(group, [&](const Replica& self) {
      work_apart(self.collective(), self.backend(), [&] {
        if (self.rank() == self.size() - 1) fail(Failure::input, "a bad file");
      });
    });
    CHECK(failures.reported == "a bad file");
    for (const std::string& thrown : failures.thrown) CHECK(thrown != "");
  }
}

TEST_CASE("an interruption of one replica that works apart ends all when the work of the others is done") {
  for (int replicas = 1; replicas <= 3; ++replicas) {
    ReplicaGroup group = group_of(replicas);
    std::atomic<int> ended{0}, interrupted{0};
    const Failures failures = failures_of(group, [&](const Replica& self) {
      try {
        work_apart(self.collective(), self.backend(), [&] {
          if (self.first()) fail(Failure::interrupted, "interrupted while planning");
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          ++ended;
        });
      } catch (const Error& error) {
        interrupted += error.failure() == Failure::interrupted;
        throw;
      }
    });
    CHECK(ended == replicas - 1);
    CHECK(interrupted == replicas);
    CHECK(failures.reported.starts_with("interrupted "));
  }
}

TEST_CASE("a process that has no others works by itself") {
  bool done = false;
  work_apart(nullptr, [&] { done = true; });
  CHECK(done);
}

TEST_CASE("the work of a replica leaves when another one fails, and the failure of that is the one reported") {
  using Clock = std::chrono::steady_clock;
  ReplicaGroup group = group_of(2);
  std::atomic<bool> left{false};
  const Clock::time_point begin = Clock::now();
  const Failures failures = failures_of(group, [&](const Replica& self) {
    if (self.first()) fail(Failure::io, "the disk is full");
    work_apart(self.collective(), self.backend(), [&] {
      try {
        while (Clock::now() - begin < std::chrono::seconds(30)) {
          io::leave_if_requested("reading");
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      } catch (const Error&) {
        left = true;
        throw;
      }
    });
  });
  CHECK(left);
  CHECK(failures.reported == "the disk is full");
  CHECK(failures.thrown[1] == "replica 0 has failed");
  CHECK_FALSE(io::leave_requested());  // the next work is not asked
}

TEST_CASE("replicas that disagree are told which fact differs and in which process, also if one has a fact more") {
  ReplicaGroup group = group_of(3);
  const Facts facts{{"version", "1.2"}, {"--seed", "42"}};
  const auto reported = [&](int other, const Facts& its) {
    return failures_of(group,
                       [&](const Replica& self) {
                         require_agreement(self.collective(), self.backend(), self.rank() == other ? its : facts);
                       })
        .reported;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(reported(0, facts) == "");
  for (const int other : {1, 2})
    for (const std::size_t differing : {0, 1, 2}) {
      CAPTURE(other);
      CAPTURE(differing);
      Facts its = facts;
      if (differing == 2) its.emplace_back("--epochs", "3");
      its[differing].second += "7";
      const std::string line = reported(other, its);
      CHECK(has(line, its[differing].first + " is " + its[differing].second));
      const std::string on_host = " (host " + io::host_name() + ") ";
      CHECK(has(line, "in process 0" + on_host));
      CHECK(has(line, "in process " + std::to_string(other) + on_host));
    }
}

TEST_CASE("shares are even, in order, and cover everything") {
  for (int size = 1; size <= 6; ++size)
    for (std::int64_t items = 0; items < 20; ++items) {
      std::int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Share share = share_of(items, rank, size);
        CHECK(share.first == next);
        CHECK((share.count == items / size || share.count == items / size + 1));
        next = share.end();
      }
      CHECK(next == items);
    }
}

TEST_CASE("whichever replica fails before whichever call: its failure is the one reported, and the others leave") {
  constexpr int kReplicas = 3, kCalls = 6;
  for (int failing = 0; failing < kReplicas; ++failing)
    for (int at = 0; at <= kCalls; ++at) {
      CAPTURE(failing);
      CAPTURE(at);
      ReplicaGroup group = group_of(kReplicas);
      const Failures failures = failures_of(group, [&](const Replica& self) {
        const Tensor x = ops::full({100}, 1, DType::f32, self.backend());
        const Addend mine{.first = self.rank(), .count = 1, .values = x};
        for (int call = 0; call <= kCalls; ++call) {
          if (self.rank() == failing && call == at) fail(Failure::io, "the disk is full");
          if (call % 3 == 0) self.collective().all_reduce_sum({&mine, 1}, kReplicas, x);
          if (call % 3 == 1) self.collective().broadcast(x, call % kReplicas);
          if (call % 3 == 2) self.collective().barrier();
        }
      });
      CHECK(failures.reported == "the disk is full");
      for (int rank = 0; rank < kReplicas; ++rank)
        CHECK(failures.thrown[static_cast<std::size_t>(rank)] ==
              (rank == failing ? "the disk is full" : "replica " + std::to_string(failing) + " has failed"));
    }
}

TEST_CASE("a failure of one replica that is none of this project's own is thrown, and the others leave") {
  ReplicaGroup group = group_of(3);
  std::atomic<int> left{0};
  CHECK_THROWS_WITH_AS(group.run([&](const Replica& self) {
    if (self.rank() == 1) throw std::runtime_error("something else");
    try {
      self.collective().barrier();
    } catch (const Error& error) {
      left += error.failure() == Failure::distributed;
      throw;
    }
  }),
                       "something else", std::runtime_error);
  CHECK(left == 2);
}

TEST_CASE("a replica that is asked to stop makes the others leave too, and the run says that it was asked to") {
  ReplicaGroup group = group_of(2);
  const Failures failures = failures_of(group, [&](const Replica& self) {
    if (self.rank() == 1) fail(Failure::interrupted, "stopped");
    self.collective().barrier();
  });
  CHECK(failures.reported == "stopped");
  CHECK(failures.thrown[0] == "stopped");
}

TEST_CASE("replicas that come with different calls or sizes are a bug that is named") {
  ReplicaGroup group = group_of(2);
  const auto reported = [&](const std::function<void(const Replica&)>& body) {
    return failures_of(group, body).reported;
  };
  CHECK(reported([](const Replica& self) {
          if (self.first()) return self.collective().barrier();
          self.collective().broadcast(ops::full({3}, 0, DType::f32, self.backend()), 0);
        }) ==
        "replica 1 came with broadcast of 3 elements and 0 parts, replica 0 with barrier of 0 elements and 0 parts");
  CHECK(reported([](const Replica& self) {
          self.collective().broadcast(ops::full({3 + self.rank()}, 0, DType::f32, self.backend()), 0);
        }).find("replica 1 came with broadcast of 4 elements") != std::string::npos);
  CHECK(reported([](const Replica& self) {  // part 1 is nobody's
          const Tensor x = ops::full({3}, 0, DType::f32, self.backend());
          const Addend mine{.first = 2 * self.rank(), .count = 1, .values = x};
          self.collective().all_reduce_sum({&mine, 1}, 3, x);
        }) == "all_reduce_sum: the addends do not cover 3 parts");
}
