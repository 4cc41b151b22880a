#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "distributed/background.h"
#include "support/soon.h"

using bertrand::distributed::Background;

TEST_CASE("work is done in order beside its owner, and what it held is let go before wait returns") {
  Background background;
  std::vector<int> done;
  const auto held = std::make_shared<int>(0);
  for (int i = 0; i < 100; ++i) background.start([&done, i, held] { done.push_back(i); });
  background.wait();
  CHECK(held.use_count() == 1);
  REQUIRE(done.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(done[static_cast<std::size_t>(i)] == i);
}

TEST_CASE(
    "what a piece of work throws is thrown by wait, the pieces after it are left out, and it goes on after that") {
  Background background;
  std::atomic<int> done{0};
  std::atomic<bool> go_on{false};
  background.start([&] {
    while (!go_on) std::this_thread::yield();
    throw std::runtime_error("the link is down");
  });
  for (int i = 0; i < 5; ++i) background.start([&] { ++done; });
  go_on = true;
  CHECK_THROWS_WITH(background.wait(), "the link is down");
  CHECK(done == 0);
  background.start([&] { ++done; });
  background.wait();
  CHECK(done == 1);

  background.start([] { throw std::runtime_error("the link is down again"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it has thrown
  background.start([&] { ++done; });
  CHECK_THROWS_WITH(background.wait(), "the link is down again");
  CHECK(done == 1);
}

TEST_CASE("what a piece of work held is let go when the next one is started, and not only in the end") {
  Background background;
  const auto held = std::make_shared<int>(0);
  background.start([held] {});
  CHECK(support::soon([&] {
    background.start([] {});
    return held.use_count() == 1;
  }));
  background.wait();
}

TEST_CASE("the owner's thread destroys what the pieces of work hold also if one throws or the owner goes") {
  struct Destroyed {
    std::vector<std::thread::id>& by;
    ~Destroyed() { by.push_back(std::this_thread::get_id()); }
  };
  std::vector<std::thread::id> by;
  {
    Background background;
    const auto start = [&](const std::function<void()>& work) {
      background.start([work, held = std::make_shared<Destroyed>(by)] { work(); });
    };
    std::atomic<bool> done{false};
    start([&] { done = true; });
    REQUIRE(support::soon([&] { return done.load(); }));
    start([] {});
    background.wait();
    CHECK(by.size() == 2);
    start([] { throw std::runtime_error("the link is down"); });
    start([] {});
    CHECK_THROWS(background.wait());
    CHECK(by.size() == 4);
    start([] {});
    start([] {});
  }
  CHECK(by.size() == 6);
  for (const std::thread::id thread : by) CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("an owner that goes waits for what has begun, and nothing else is done") {
  std::atomic<int> done{0};
  std::atomic<bool> begun{false}, go_on{false};
  {
    Background background;
    background.start([&] {
      begun = true;
      while (!go_on) std::this_thread::yield();
      ++done;
    });
    background.start([&] { done += 100; });
    REQUIRE(support::soon([&] { return begun.load(); }));
    std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      go_on = true;
    }).detach();
  }
  CHECK(done == 1);
}
