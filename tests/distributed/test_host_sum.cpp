#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "distributed/host_sum.h"
#include "distributed/parts.h"
#include "support/file_limit.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::distributed;
using namespace bertrand::testing;
namespace fs = std::filesystem;

namespace {

/// Returns when `is_over` says so. Throws if that takes a minute: another process has died.
void wait_until(const std::function<bool()>& is_over) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!is_over()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("another process did not come");
    std::this_thread::yield();
  }
}

/// One of the processes of sums, which are forked from this one.
struct Member {
  Member(std::unique_ptr<SharedMemory> memory, int own_rank, int all)
      : backend(open_cpu({.threads = 1})),
        rank(own_rank),
        processes(all),
        sum(std::move(memory), own_rank, all, *backend) {}

  /// Returns when all processes have come here as often: the next sum expects that all have returned from the one
  /// before.
  void meet() {
    const std::atomic_ref arrived(*counter);
    ++arrived;
    wait_until([&, all = static_cast<std::uint64_t>(processes) * ++meetings] { return arrived.load() >= all; });
  }

  /// How many elements of the sum of `parts` are not those of the tree. `late`: this process comes so many microseconds
  /// later to each wait.
  int wrong(std::int64_t parts, Dim elements, int late = 0) {
    std::vector<std::vector<Addend>> addends(static_cast<std::size_t>(processes));
    for (int r = 0; r < processes; ++r) {
      const Share share = share_of(parts, r, processes);
      for (std::int64_t i = share.first; i < share.end(); ++i) {
        std::vector<float> values;
        for (Dim e = 0; r == rank && e < elements; ++e) values.push_back(part(i, e));
        addends[static_cast<std::size_t>(r)].push_back(
            {.first = i, .count = 1, .values = r == rank ? ops::from_host(values, {elements}, *backend) : Tensor()});
      }
    }
    const auto& mine = addends[static_cast<std::size_t>(rank)];
    const Tensor out = mine.empty() ? Tensor({elements}, DType::f32, *backend) : mine.back().values;
    meet();
    sum.sum(addends, parts, out, [&](const HostSum::Behind& behind) {
      if (late > 0) std::this_thread::sleep_for(std::chrono::microseconds(late));
      wait_until([&] { return behind().empty(); });
    });
    const auto values = ops::to_host<float>(out);
    int wrong = 0;
    for (Dim e = 0; e < elements; ++e) wrong += values[static_cast<std::size_t>(e)] != tree(0, parts, e);
    return wrong;
  }

  const std::unique_ptr<Backend> backend;
  const int rank, processes;
  HostSum sum;
  std::uint64_t* counter = nullptr;  ///< of meet(), in memory that all share
  std::uint64_t meetings = 0;
};

/// The exit codes of processes that share memory of the first and each do `body`.
std::vector<int> codes_of(int processes, const std::function<int(Member&)>& body) {
  SharedMemory memory(HostSum::bytes(processes)), meeting(sizeof(std::uint64_t));
  std::vector<pid_t> children;
  for (int rank = 0; rank < processes; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    int code = 100;
    try {
      Member member(std::make_unique<SharedMemory>(memory.place()), rank, processes);
      member.counter = reinterpret_cast<std::uint64_t*>(meeting.bytes().data());
      code = body(member);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
    ::_exit(code);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return codes;
}

}  // namespace

TEST_CASE("processes of a host add up in the one tree, however many they are and whoever is late") {
  for (const int processes : {2, 3, 5}) {
    CAPTURE(processes);
    const auto codes = codes_of(processes, [](Member& self) {
      int wrong = 0;
      for (const std::int64_t parts : {1, 2, 4, 5, 9})
        for (const Dim elements : {Dim{1}, Dim{40}, 5 * Dim{65536} + 17}) wrong += self.wrong(parts, elements) > 0;
      for (int late = 0; late < self.processes; ++late)
        wrong += self.wrong(7, 9 * 65536 + 3, late == self.rank ? 300 : 0) > 0;
      return wrong;
    });
    CHECK(codes == std::vector<int>(static_cast<std::size_t>(processes), 0));
  }
}

TEST_CASE("many addends of processes of a host share the room of a few") {
  const auto codes = codes_of(2, [](Member& self) { return self.wrong(2 * 64, 3 * 65536 + 5) > 0 ? 1 : 0; });
  CHECK(codes == std::vector<int>{0, 0});
}

TEST_CASE("a sum names the processes that it waits for, and after one that failed there is no other") {
  SharedMemory memory(HostSum::bytes(3));
  Member self(std::make_unique<SharedMemory>(memory.place()), 1, 3);
  struct Left {};
  std::vector<int> waited_for;
  const Tensor x = ops::full({10}, 1, DType::f32, *self.backend);
  CHECK_THROWS_AS(self.sum.sum({{}, {{.first = 0, .count = 1, .values = x}}, {}}, 1, x,
                               [&](const HostSum::Behind& behind) {
                                 waited_for = behind();
                                 if (!waited_for.empty()) throw Left{};
                               }),
                  Left);
  CHECK(waited_for == std::vector<int>{0, 2});
  CHECK_THROWS_WITH(self.sum.sum({{}, {}, {}}, 0, x, {}),
                    "shared memory: expected no sum after one that failed, got another");
}

TEST_CASE("memory that is too small for the processes of a sum is refused before it is divided") {
  SharedMemory memory(100);
  CHECK_THROWS_WITH(Member(std::make_unique<SharedMemory>(memory.place()), 0, 3),
                    "shared memory: expected 6291456 bytes for 3 processes, got 100");
}

TEST_CASE("memory that the system does not give is refused when it is asked for and not when it is used") {
  const auto refused = []() -> std::string {
    try {
      const SharedMemory memory(8 << 20);
    } catch (const Error& error) {
      CHECK(error.failure() == Failure::distributed);
      return error.what();
    }
    return "";
  };
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit less{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  const auto on_too_large = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &less) == 0);
  CHECK(refused() == "shared memory: posix_fallocate: File too large");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, on_too_large);
  const support::FileLimit none(0);
  CHECK(refused() == "shared memory: memfd_create: Too many open files");
}

TEST_CASE("memory that processes share has no name, so nothing of it is left when they are killed") {
  const SharedMemory memory(1 << 20);
  const std::string link = "/proc/self/fd/" + std::to_string(memory.place().descriptor);
  CHECK(fs::read_symlink(link) == "/memfd:bertrand-sums (deleted)");
}

TEST_CASE("memory that is not that of this run, or not within reach, is refused in one line") {
  const SharedMemory memory(1000);
  const SharedMemory same(memory.place());
  same.bytes()[999] = std::byte{7};
  CHECK(memory.bytes()[999] == std::byte{7});
  const auto refused = [](const SharedMemory::Place& place) {
    try {
      const SharedMemory found(place);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string name = "shared memory: /proc/" + std::to_string(::getpid()) + "/fd/";
  SharedMemory::Place place = memory.place();
  ++place.token;
  CHECK(refused(place) == name + std::to_string(place.descriptor) + ": expected the memory of this run, got another");
  --place.token;
  ++place.bytes;
  CHECK(refused(place) == name + std::to_string(place.descriptor) + ": expected 1065 bytes, got 1064");
  place.descriptor = 9999;
  CHECK(refused(place) == name + "9999: No such file or directory");
}
