// Items worked on in any order.
#include "io/in_threads.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using bertrand::io::in_threads;

TEST_CASE("each item is worked on once by any number of threads") {
  for (const int threads : {0, 1, 2, 7}) {
    std::vector<std::atomic<int>> times(5);
    in_threads(times.size(), threads, [&](std::size_t i) { ++times[i]; });
    CHECK(std::ranges::all_of(times, [](int count) { return count == 1; }));
  }
  in_threads(0, 2, [](std::size_t) { FAIL("there is no item"); });
}

TEST_CASE("after an item fails no further one begins") {
  std::vector<std::size_t> begun;
  CHECK_THROWS_AS(in_threads(10, 1,
                             [&](std::size_t i) {
                               begun.push_back(i);
                               if (i == 2) throw std::runtime_error("2");
                             }),
                  std::runtime_error);
  CHECK(begun == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("of items that fail at the same time the first one is told") {
  std::atomic<bool> second_failed = false;
  std::string told;
  try {
    in_threads(2, 2, [&](std::size_t i) {
      if (i == 0) second_failed.wait(false);
      second_failed = true;
      second_failed.notify_all();
      throw std::runtime_error(std::to_string(i));
    });
  } catch (const std::runtime_error& error) {
    told = error.what();
  }
  CHECK(told == "0");
}
