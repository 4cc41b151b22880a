// Items from a producer, worked on by threads, whose results come in order.
#include "io/in_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/soon.h"

using namespace bertrand::io;

namespace {

/// Gives the numbers below `count`, then nothing; one call after that is a mistake.
class Numbers {
 public:
  explicit Numbers(int count) : count_(count) {}
  std::optional<int> next() {
    REQUIRE_FALSE(has_ended_);
    has_ended_ = given_ == count_;
    if (has_ended_) return {};
    return given_++;
  }
  int given() const { return given_; }

 private:
  const int count_;
  int given_ = 0;
  bool has_ended_ = false;
};

/// What was used, and what was thrown then.
struct Course {
  std::vector<int> used;
  std::string thrown;
};

/// Of six items on `threads` threads: reading, work or use of one item or another fails. Work of the first takes
/// longest.
Course course(int threads, int bad_next, int bad_work, int bad_use) {
  Course course;
  std::atomic<int> at_work = 0;
  int given = 0;
  const auto next = [&]() -> std::optional<int> {
    if (given == bad_next) {
      given = 1000;
      throw std::runtime_error("next");
    }
    REQUIRE(given < 1000);
    return given == 6 ? std::nullopt : std::optional(given++);
  };
  const auto work = [&](int item, std::size_t) {
    ++at_work;
    if (item == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --at_work;
    if (item == bad_work) throw std::runtime_error("work");
    return item;
  };
  const auto use = [&](int result) {
    if (result == bad_use) throw std::runtime_error("use");
    course.used.push_back(result);
  };
  try {
    in_order(next, threads, work, use);
  } catch (const std::runtime_error& error) {
    course.thrown = error.what();
  }
  CHECK(at_work == 0);
  return course;
}

std::vector<int> below(int end) {
  std::vector<int> numbers;
  for (int i = 0; i < end; ++i) numbers.push_back(i);
  return numbers;
}

constexpr int kNone = -1;

}  // namespace

TEST_CASE("results come in the order of the items, whichever thread is first, and nothing is read after the end") {
  for (const int threads : {0, 1, 2, 5})
    for (const int count : {0, 1, 2, 17}) {
      CAPTURE(threads);
      CAPTURE(count);
      Numbers numbers(count);
      std::vector<int> used;
      in_order([&] { return numbers.next(); }, threads,
               [](int item, std::size_t) {
                 std::this_thread::sleep_for(std::chrono::microseconds(100 * (item % 3 == 0 ? 5 : 1)));
                 return item;
               },
               [&](int result) { used.push_back(result); });
      CHECK(used == below(count));
    }
}

TEST_CASE("items and results are moved through and never copied") {
  int given = 0;
  std::vector<std::string> used;
  in_order([&] { return given == 3 ? std::nullopt : std::optional(std::make_unique<int>(given++)); }, 2,
           [](std::unique_ptr<int> item, std::size_t) { return std::make_unique<std::string>(std::to_string(*item)); },
           [&](std::unique_ptr<std::string> result) { used.push_back(*result); });
  CHECK(used == std::vector<std::string>{"0", "1", "2"});
}

TEST_CASE("one item more than there are threads is read before the first result is there, and no more") {
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    Numbers numbers(20);
    std::atomic<int> given = 0, at_work = 0, most_at_work = 0;
    bool was_read_ahead = true;
    int used = 0, most_held = 0;
    in_order(
        [&] {
          const auto item = numbers.next();
          given = numbers.given();
          most_held = std::max(most_held, given - used);
          return item;
        },
        threads,
        [&](int item, std::size_t) {
          const int now = ++at_work;
          for (int most = most_at_work; most < now && !most_at_work.compare_exchange_weak(most, now);) {
          }
          const bool is_ahead = support::soon([&] { return given >= std::min(20, item + 2); });
          --at_work;
          return is_ahead;
        },
        [&](bool is_ahead) { was_read_ahead = was_read_ahead && is_ahead, ++used; });
    CHECK(was_read_ahead);
    CHECK(most_at_work <= threads);
    CHECK(most_held == threads + 1);
  }
}

TEST_CASE("while a result is used, the items after it are worked on, with one thread too") {
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    Numbers numbers(5);
    std::atomic<int> begun = 0;
    in_order([&] { return numbers.next(); }, threads, [&](int item, std::size_t) { return ++begun, item; },
             [&](int result) { CHECK(support::soon([&] { return begun >= std::min(5, result + 1 + threads); })); });
  }
}

TEST_CASE("items that are under way at once have slots of their own, of which there are as many as threads") {
  constexpr int kThreads = 3;
  Numbers numbers(60);
  std::atomic<bool> is_taken[kThreads] = {};
  int shared = 0;
  in_order([&] { return numbers.next(); }, kThreads,
           [&](int item, std::size_t slot) {
             if (slot >= kThreads) return true;
             const bool was_taken = is_taken[slot].exchange(true);
             if (item % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
             is_taken[slot] = false;
             return was_taken;
           },
           [&](bool was_taken) { shared += was_taken ? 1 : 0; });
  CHECK(shared == 0);
}

TEST_CASE("the first exception in the order of the items is thrown, after all results before it and after all work") {
  for (const int threads : {1, 2, 4, 9}) {
    CAPTURE(threads);
    for (int first = 0; first < 6; ++first) {
      CAPTURE(first);
      const Course next = course(threads, first, kNone, kNone), work = course(threads, kNone, first, kNone);
      const Course use = course(threads, kNone, kNone, first);
      for (const Course* each : {&next, &work, &use}) CHECK(each->used == below(first));
      CHECK(next.thrown == "next");
      CHECK(work.thrown == "work");
      CHECK(use.thrown == "use");
      CHECK(course(threads, first + 1, first, kNone).thrown == "work");
      CHECK(course(threads, first + 1, kNone, first).thrown == "use");
      CHECK(course(threads, kNone, first, first).thrown == "work");
      CHECK(course(threads, kNone, first + 1, first).thrown == "use");
    }
  }
}

TEST_CASE("numbered items come in batches, the last of them smaller, which together are all items") {
  for (const std::size_t count : {0, 1, 6, 7})
    for (const std::size_t batch : {1, 3, 100}) {
      CAPTURE(count);
      CAPTURE(batch);
      std::size_t end = 0;
      in_order(
          {.count = count, .threads = 2, .batch = batch},
          [](std::size_t first, std::size_t past) { return std::pair(first, past); },
          [&](const std::pair<std::size_t, std::size_t>& numbers) {
            CHECK(numbers.first == end);
            end = numbers.second;
            CHECK(end - numbers.first == std::min(batch, count - numbers.first));
          });
      CHECK(end == count);
    }
}
