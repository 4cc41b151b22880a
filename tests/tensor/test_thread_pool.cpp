// The threads that share out a kernel's pieces: each piece is computed once, and none of them outlives its pool.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <ctime>
#include <exception>
#include <random>
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

TEST_CASE("pieces of a thread lie beside each other, in the same order as the threads, while none is slow") {
  alarm(60);
  for (const int threads : {2, 3, 4}) {
    ThreadPool pool(threads);
    for (const std::int64_t each : {1, 5, 40}) {
      CAPTURE(threads);
      CAPTURE(each);
      std::this_thread::sleep_for(20ms);  // until all wait for the job
      std::vector<std::int64_t> computed_by, expected;
      for (std::int64_t piece = 0; piece < threads * each; ++piece) expected.push_back(piece / each);
      computed_by.resize(expected.size());
      std::barrier together(threads);  // nobody ends a piece before all have begun one
      pool.run(threads * each, [&](std::int64_t piece, int thread) {
        computed_by[static_cast<std::size_t>(piece)] = thread;
        together.arrive_and_wait();
      });
      CHECK(computed_by == expected);
    }
  }
  alarm(0);
}

TEST_CASE("the pieces of a slow thread are computed by the others") {
  for (const int threads : {2, 3, 4}) {
    for (int slow = 0; slow < threads; ++slow) {
      CAPTURE(threads);
      CAPTURE(slow);
      ThreadPool pool(threads);
      const std::int64_t pieces = 6 * threads;
      std::atomic<std::int64_t> computed{0};
      std::atomic<bool> begun{false};
      const auto deadline = std::chrono::steady_clock::now() + 10s;
      const auto wait_for = [&](const auto& condition) {
        while (!condition() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      };
      bool helped = false;
      pool.run(pieces, [&](std::int64_t, int thread) {
        if (thread == slow && !begun.exchange(true)) {
          wait_for([&] { return computed == pieces - 1; });
          helped = computed == pieces - 1;
        }
        wait_for([&] { return begun.load(); });  // its first piece is not taken from it
        ++computed;
      });
      CHECK(helped);
    }
  }
}

// Nothing here is atomic, and a piece reads what another thread has mostly written, so ThreadSanitizer sees an order
// between jobs that is missing.
TEST_CASE("what threads write in a job is read in the next one, of many jobs of many sizes") {
  for (const int threads : {2, 3, 16}) {
    ThreadPool pool(threads);
    std::mt19937 random(1);
    for (int round = 0; round < 1'000; ++round) {
      const auto pieces = static_cast<std::int64_t>(random()) % (round % 20 == 0 ? 5'000 : 4 * threads);
      CAPTURE(threads);
      CAPTURE(pieces);
      std::vector<int> from(static_cast<std::size_t>(pieces)), to = from, times = from;
      for (int job = 0; job < 10; ++job) {
        pool.run(pieces, [&](std::int64_t piece, int) {
          const auto at = static_cast<std::size_t>(piece);
          ++times[at];
          to[at] = from[from.size() - 1 - at] + 1;
        });
        from.swap(to);
      }
      REQUIRE(times == std::vector<int>(times.size(), 10));
      REQUIRE(from == times);
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

TEST_CASE("no thread misses a job, however soon after the last it comes") {
  alarm(60);  // one that missed a job would keep the others in it for ever
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    std::atomic<int> begun{0};
    const auto end = std::chrono::steady_clock::now() + 300ms;
    for (int job = 1; std::chrono::steady_clock::now() < end; ++job) {
      pool.run(threads, [](std::int64_t, int) {});  // may be over before a thread has come to it
      pool.run(threads, [&](std::int64_t, int) {
        ++begun;
        while (begun < job * threads) std::this_thread::yield();  // nobody ends a piece before all have begun one
      });
    }
  }
  alarm(0);
}

TEST_CASE("a piece that throws ends the program, whichever thread computes it") {
  for (const int threads : {1, 2}) {
    for (int thrower = 0; thrower < threads; ++thrower) {
      const pid_t child = ::fork();
      if (child == 0) {
        std::set_terminate([] { ::_exit(3); });
        ::alarm(60);
        try {
          std::atomic<int> begun{0};
          ThreadPool(threads).run(2, [&](std::int64_t, int thread) {
            for (++begun; begun < threads;) std::this_thread::yield();  // each thread has a piece
            if (thread == thrower) std::rethrow_exception(std::make_exception_ptr(1));
          });
        } catch (int) {
          ::_exit(1);
        }
        ::_exit(2);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      CAPTURE(threads);
      CAPTURE(thrower);
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 3);
    }
  }
}

TEST_CASE("the threads of a pool end with it, however soon that is") {
  alarm(60);  // one that slept on would keep this one for ever
  {
    ThreadPool pool(3);
    std::this_thread::sleep_for(20ms);  // all sleep
  }
  for (int i = 0; i < 10'000; ++i) {
    ThreadPool pool(3);
    if (i % 2 == 0) pool.run(4, [](std::int64_t, int) {});
  }
  alarm(0);
}
