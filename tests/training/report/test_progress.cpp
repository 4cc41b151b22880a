#include "training/report/progress.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "support/terminal.h"

using namespace bertrand::training;
using support::in_file;
using support::on_terminal;

namespace {

const ProgressFigures kFigures{.step = 120,
                               .total_steps = 1000,
                               .loss = 6.8123,
                               .learning_rate = 9.2e-5,
                               .examples_per_second = 412.3,
                               .tokens_per_second = 51234,
                               .seconds_left = 3723,
                               .memory_bytes = 1'760'000'000};
const std::string kText =
    "step 120/1000  12.0%  loss 6.8123  lr 9.20e-05  412 examples/s  51.2k tokens/s  1:02:03 left  1.76 GB";

}  // namespace

TEST_CASE("a line says how many steps were skipped, if any were") {
  ProgressFigures figures = kFigures;
  CHECK(progress_text(figures) == kText);
  figures.skipped_steps = 3;
  CHECK(progress_text(figures) == kText + "  3 skipped");
}

TEST_CASE("the bar is full at the end and not before") {
  CHECK(progress_bar(0, 10) == "[..........]");
  CHECK(progress_bar(999, 1000) == "[#########.]");
  CHECK(progress_bar(1000, 1000) == "[##########]");
  CHECK(progress_bar(12, 10) == "[##########]");
  CHECK(progress_bar(1, 0) == "[..........]");
}

TEST_CASE("progress names step, loss, rates, time left and memory, and leaves out what is not known yet") {
  CHECK(progress_text(kFigures) == kText);
  CHECK(progress_text({.step = 1, .total_steps = 4, .loss = 10.5, .learning_rate = 0}) ==
        "step 1/4  25.0%  loss 10.5000  lr 0.00e+00");
  CHECK(progress_text({.step = 4, .total_steps = 4, .seconds_left = 0}).ends_with("  0s left"));
  CHECK(progress_text({.step = 3}) == "step 3/0  0.0%  loss 0.0000  lr 0.00e+00");
  CHECK(progress_text({.step = 1, .total_steps = 4, .examples_per_second = 0.5, .tokens_per_second = 64})
            .ends_with("  0.5 examples/s  64 tokens/s"));
}

TEST_CASE("a file gets plain lines, and only those that are logged") {
  const std::string text = in_file([](std::FILE* out) {
    Progress progress(out);
    progress.update(kFigures);
    progress.log(kFigures);
    progress.message("saved");
  });
  CHECK(text == kText + "\nsaved\n");
}

TEST_CASE("a terminal gets one line, redrawn at most ten times a second and cut to its width") {
  const std::string text = on_terminal(40, [](std::FILE* out) {
    Progress progress(out);
    for (int i = 0; i < 1000; ++i) progress.update(kFigures);
    progress.log(kFigures);
  });
  CHECK(text == "[#.........] step 120/1000  12.0%  loss\r\n");
}

TEST_CASE("a message on a terminal takes the place of the line, which then comes back") {
  const std::string text = on_terminal(60, [](std::FILE* out) {
    Progress progress(out);
    progress.update({.step = 1, .total_steps = 2});
    progress.message("saved");
    progress.update({.step = 2, .total_steps = 2});  // the last step is always drawn
  });
  const std::string first = "[#####.....] step 1/2  50.0%  loss 0.0000  lr 0.00e+00";
  CHECK(text.starts_with(first + "\r" + std::string(first.size(), ' ') + "\rsaved\r\n[##########] step 2/2  100.0%"));
  CHECK(text.ends_with("\r\n"));
}

TEST_CASE("at the first step that is shown nothing is known of the time left") {
  const std::string text = in_file([](std::FILE* out) {
    Progress progress(out);
    progress.update({.step = 5, .total_steps = 8});
    progress.log({.step = 5, .total_steps = 8});
  });
  CHECK(text == "step 5/8  62.5%  loss 0.0000  lr 0.00e+00\n");
}

TEST_CASE("the time left follows from the steps since the first that was shown") {
  using Clock = std::chrono::steady_clock;
  double longest = 0;  // seconds from before the first step to after the second
  const std::string text = in_file([&](std::FILE* out) {
    Progress progress(out);
    const auto begin = Clock::now();
    progress.update({.step = 501, .total_steps = 100501});  // resumed
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    progress.log({.step = 502, .total_steps = 100502});
    longest = std::chrono::duration<double>(Clock::now() - begin).count();
  });
  int hours = 0, minutes = 0, seconds = 0;
  const std::size_t at = text.find("  lr 0.00e+00  ");
  REQUIRE(at != std::string::npos);
  REQUIRE(std::sscanf(text.c_str() + at, "  lr 0.00e+00  %d:%d:%d left", &hours, &minutes, &seconds) == 3);
  const int left = 3600 * hours + 60 * minutes + seconds;
  CHECK(left >= 5000);  // 100,000 steps of 50 ms and a little
  CHECK(left <= 100000 * longest + 1);
}
