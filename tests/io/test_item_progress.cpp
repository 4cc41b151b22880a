// What is shown of work on many items, on a terminal.
#include "io/item_progress.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/terminal.h"

using namespace bertrand::io;

namespace {

void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(110)); }

}  // namespace

TEST_CASE("the rate and the time left of work that goes on are those since it went on") {
  using Clock = std::chrono::steady_clock;
  Clock::duration longest{};  // between two calls of which the second is too early to be drawn
  double seconds = 0;         // of the work
  const std::string text = support::on_terminal(80, [&](std::FILE* out) {
    ItemProgress progress("predicting", 200, out);
    wait();
    auto begun = Clock::now();
    const auto went_on = begun;
    progress.begin(180);
    progress.update(190);
    longest = Clock::now() - begun;
    wait();
    begun = Clock::now();
    progress.update(200);
    seconds = std::chrono::duration<double>(Clock::now() - went_on).count();
    progress.update(200);
    longest = std::max(longest, Clock::now() - begun);
  });
  if (longest >= std::chrono::milliseconds(100)) {
    MESSAGE("SKIPPED: other programs had the processor");
    return;
  }
  const std::string beginning = "predicting: 200 of 200, ";
  REQUIRE(text.starts_with(beginning));
  CHECK(text.find("predicting", 1) == std::string::npos);  // drawn once
  CHECK(std::stod(text.substr(beginning.size())) <= 182);  // 20 in 0.11 seconds or more
  CHECK(std::stod(text.substr(beginning.size())) >= 0.99 * 20 / seconds);
  CHECK(text.ends_with("/s, 0s left\r\n"));
}

TEST_CASE("of items whose number is not known no time is left to tell") {
  const std::string text = support::on_terminal(80, [](std::FILE* out) {
    ItemProgress progress("reading", 0, out);
    progress.begin(0);
    wait();
    progress.update(7);
  });
  CHECK(text.starts_with("reading: 7, "));
  CHECK(text.ends_with("/s\r\n"));
}

TEST_CASE("the rate of work that begins with its display is that of all items") {
  const std::string text = support::on_terminal(80, [](std::FILE* out) {
    ItemProgress progress("extracting", 2, out);
    wait();
    progress.update(1);
  });
  const std::string beginning = "extracting: 1 of 2, ";
  REQUIRE(text.starts_with(beginning));
  CHECK(std::stod(text.substr(beginning.size())) > 0);
}
