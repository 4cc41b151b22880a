#include "io/byte_progress.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "support/terminal.h"

using namespace bertrand::io;
using support::in_file;
using support::on_terminal;

TEST_CASE("a stage on a terminal is redrawn and ends with a line that stays") {
  bool in_time = true;
  const std::string text = on_terminal(30, [&](std::FILE* out) {
    const auto begun = std::chrono::steady_clock::now();
    const auto is_before = [&](int milliseconds) {
      return std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(milliseconds);
    };
    ByteProgress progress("reading", 4e6, out);
    progress.update(1e6);
    in_time = is_before(100);  // too early to be drawn
    CHECK_FALSE((in_time && progress.shown()));
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    progress.update(2e6);
    CHECK(progress.shown());
    progress.finish();
    in_time = in_time && is_before(900);
  });
  if (!in_time) {
    MESSAGE("SKIPPED: other programs had the processor");
    return;
  }
  CHECK(text.starts_with("reading: 50 % of 4 MB, "));
  CHECK(text.find("\r" + std::string(29, ' ') + "\rreading: 4 MB in 0.") == 29);
  CHECK(text.ends_with(" MB/s\r\n"));
}

TEST_CASE("a stage that is left on a terminal leaves its line") {
  const std::string text = on_terminal(80, [](std::FILE* out) {
    ByteProgress progress("reading", 0, out);
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    progress.update(2e6);
  });
  CHECK(text.starts_with("reading: 2 MB, "));
  CHECK(text.ends_with(" MB/s\r\n"));
}

TEST_CASE("a short stage is one plain line in a file") {
  const std::string text = in_file([](std::FILE* out) {
    ByteProgress progress("reading", 4e6, out);
    progress.update(2e6);
    progress.finish();
  });
  CHECK(text.starts_with("reading: 4 MB in "));
  CHECK(text.ends_with(" MB/s\n"));
  CHECK(text.find('\n') == text.size() - 1);
}

TEST_CASE("a quiet stage shows nothing") {
  const std::string text = on_terminal(80, [](std::FILE* out) {
    ByteProgress progress("reading", 4e6, out, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    progress.update(2e6);
    CHECK_FALSE(progress.shown());
  });
  CHECK(text == "");
}

TEST_CASE("the time left of a stage is that of what it has not done") {
  const auto begun = std::chrono::steady_clock::now();
  const std::string text = on_terminal(80, [](std::FILE* out) {
    ByteProgress progress("reading", 4e6, out);
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    progress.update(2e6);  // as much again
  });
  if (std::chrono::steady_clock::now() - begun >= std::chrono::milliseconds(450)) {
    MESSAGE("SKIPPED: other programs had the processor");
    return;
  }
  CHECK(text.find(", 0s left") != std::string::npos);
}
