// The threads that share out a kernel's pieces: each piece is computed once, and none of them outlives its pool.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "io/error.h"
#include "tensor/cpu/thread_pool.h"

using bertrand::cpu::ThreadPool;
using namespace std::chrono_literals;

TEST_CASE("every piece of a job is computed once, by a thread of the pool") {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (std::int64_t pieces = 0; pieces < 300; ++pieces) {
      std::vector<std::atomic<int>> computed(static_cast<std::size_t>(pieces));
      std::atomic<int> strangers{0};
      pool.run(pieces, [&](std::int64_t piece, int thread) {
        ++computed[static_cast<std::size_t>(piece)];
        if (thread < 0 || thread >= threads) ++strangers;
      });
      for (const auto& times : computed) REQUIRE(times == 1);
      REQUIRE(strangers == 0);
    }
  }
}

TEST_CASE("a thread that has gone to sleep wakes for the next job, and takes no time of the processor until then") {
  for (const int threads : {2, 4}) {  // one that sleeps, and several
    CAPTURE(threads);
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    pool.run(threads, [](std::int64_t, int) {});
    std::this_thread::sleep_for(20ms);
    const std::clock_t before = std::clock();
    std::this_thread::sleep_for(200ms);
    CHECK(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC < 0.04);  // seconds; one that spins takes 0.2

    // Each piece waits until others compute all the others.
    std::atomic<int> begun{0}, together{0};
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    pool.run(threads, [&](std::int64_t, int) {
      ++begun;
      while (begun < threads && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      if (begun == threads) ++together;
    });
    CHECK(together == threads);
  }
}

TEST_CASE("a pool for which there are not enough threads says so, and ends those that it has") {
  const pid_t child = ::fork();
  if (child == 0) {
    // A user who has no other thread may have eight; a limit on memory would end AddressSanitizer, not the pool.
    const rlimit threads{.rlim_cur = 8, .rlim_max = 8};
    if (::setrlimit(RLIMIT_NPROC, &threads) != 0 || (::geteuid() == 0 && ::setuid(54'321) != 0)) ::_exit(77);
    ::alarm(60);
    try {
      ThreadPool pool(1000);
    } catch (const bertrand::Error& error) {
      ::_exit(std::string(error.what()).starts_with("threads: expected 1000 to start, got ") ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) MESSAGE("SKIPPED: no other user may be become here");
  else CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the threads of a pool end with it, however soon that is") {
  alarm(60);  // one that slept on would keep this one for ever
  for (int i = 0; i < 10'000; ++i) {
    ThreadPool pool(3);
    if (i % 2 == 0) pool.run(4, [](std::int64_t, int) {});
  }
  alarm(0);
}
