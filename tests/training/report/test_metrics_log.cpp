#include "training/report/metrics_log.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "io/error.h"
#include "support/event_file.h"
#include "support/faulty_files.h"
#include "support/program.h"

using namespace bertrand;
using namespace bertrand::training;
using support::read_text;
using support::write_text;
namespace fs = std::filesystem;

TEST_CASE("a line of metrics is JSON whose numbers read back to the same float") {
  CHECK(json_line({.step = 10, .figures = {{"loss", 2.5}, {"learning_rate", 1e-4}}}) ==
        R"({"step":10,"loss":2.5,"learning_rate":1e-04})");
  CHECK(json_line({.step = 1, .figures = {{"loss", 2.5}}, .seconds = 12.34567}) ==
        R"({"step":1,"loss":2.5,"seconds":12.346})");
  CHECK(json_line({.step = 1, .figures = {{"memory_bytes", 1234567890}, {"epoch", 2}}}) ==
        R"({"step":1,"memory_bytes":1234567890,"epoch":2})");
  CHECK(json_line({.step = 1, .figures = {{"x", 999'999'999'999'999}, {"y", 1e15}}}) ==
        R"({"step":1,"x":999999999999999,"y":1e+15})");
  for (const float value : {0.1f, 1.0f / 3, 1e-45f, 3.4028235e38f, 6.8123f, 16777216.0f, 1.5e20f}) {
    const auto line = nlohmann::json::parse(json_line({.figures = {{"x", static_cast<double>(value)}}}));
    CHECK(line.at("x").get<float>() == value);
  }
  for (const double value : {0.1, 1.0 / 3, 2e-308, 1e300, 5e15 + 1}) {
    const auto line = nlohmann::json::parse(json_line({.figures = {{"x", value}}}));
    CHECK(line.at("x").get<double>() == value);
  }
}

TEST_CASE("what is not finite is null, so that every line stays JSON") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(json_line({.step = 3, .figures = {{"loss", std::nan("")}, {"grad_norm", -infinity}}}) ==
        R"({"step":3,"loss":null,"grad_norm":null})");
}

TEST_CASE("metrics are appended, and a resumed run drops what came after its checkpoint") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "metrics.jsonl";
  {
    MetricsLog log(directory / "", {.step = 0});
    for (const int step : {10, 20, 30}) log.write({.step = step, .figures = {{"loss", 1.0 / step}}});
  }
  const std::string lines = "{\"step\":10,\"loss\":0.1}\n{\"step\":20,\"loss\":0.05}\n";
  CHECK(read_text(file).starts_with(lines));

  write_text(file, read_text(file) + "{\"step\":40,\"lo");  // killed while writing
  { MetricsLog log(directory / "", {.step = 20}); }
  CHECK(read_text(file) == lines);
  write_text(file, lines + "not JSON\n[1]\n{}\n{\"step\":\"5\"}\n");
  {
    MetricsLog log(directory / "", {.step = 20});
    log.write({.step = 30, .figures = {{"loss", 0.5}}});
  }
  CHECK(read_text(file) == lines + "{\"step\":30,\"loss\":0.5}\n");
}

TEST_CASE("the figures of an evaluation that a resumed run makes again are dropped, and those of its step are not") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "metrics.jsonl", samples = directory / "samples.jsonl";
  const std::string step = "{\"step\":20,\"loss\":0.5}\n", evaluation = "{\"step\":20,\"eval_loss\":0.5}\n",
                    earlier = "{\"step\":10,\"eval_loss\":0.5}\n", sample = "{\"step\":20,\"examples\":[]}\n";
  for (const bool is_due : {false, true}) {
    write_text(file, earlier + step + evaluation);
    write_text(samples, sample);
    const MetricsLog log(directory / "", {.step = 20, .evaluation_due = is_due});
    CHECK(read_text(file) == earlier + step + (is_due ? "" : evaluation));
    CHECK(read_text(samples) == (is_due ? "" : sample));
  }
}

TEST_CASE("TensorBoard is told from which step on the figures of an earlier run no longer count") {
  const support::TemporaryDirectory directory;
  const auto steps_of_marks = [&](std::int64_t resumed_step) {
    MetricsLog log(directory / "", {.step = resumed_step});
    std::vector<std::uint64_t> steps;
    for (const support::Message& event : support::events_of(log.events().path()))
      if (event.contains(7)) steps.push_back(support::number(event, 2));
    return steps;
  };
  CHECK(steps_of_marks(0).empty());
  CHECK(steps_of_marks(0) == std::vector<std::uint64_t>{1});  // the first was killed before it saved anything
  CHECK(steps_of_marks(1) == std::vector<std::uint64_t>{2});
  CHECK(steps_of_marks(20) == std::vector<std::uint64_t>{21});
}

TEST_CASE("TensorBoard shows the settings of a run where it begins or goes on") {
  const support::TemporaryDirectory directory;
  write_text(directory / "run_config.json", "{\"seed\": 7}\n");
  for (const std::int64_t resumed_step : {0, 20}) {
    CAPTURE(resumed_step);
    MetricsLog log(directory / "", {.step = resumed_step});
    std::vector<std::uint64_t> steps;
    for (const support::Message& event : support::events_of(log.events().path())) {
      if (!event.contains(5)) continue;
      const support::Message value = support::inner(support::inner(event, 5), 1);
      CHECK(support::text(value, 1) == "run_config");
      CHECK(support::text(support::inner(value, 8), 8).find("{\"seed\": 7}") != std::string::npos);
      steps.push_back(event.contains(2) ? support::number(event, 2) : 0);
    }
    CHECK(steps == std::vector<std::uint64_t>{static_cast<std::uint64_t>(resumed_step)});
  }
}

TEST_CASE("a line is one write, and a full disk is an error of one line") {
  const support::TemporaryDirectory directory;
  int failing = 0, failures = 0;
  for (int calls = 1; failing < calls; ++failing) {
    CAPTURE(failing);
    support::FailingFiles files(failing, "No space left on device");
    try {
      MetricsLog log(directory / "", {.step = 0}, files);
      const int before = files.calls();
      log.write({.step = 1, .figures = {{"loss", 1.5}}});
      CHECK(files.calls() == before + 2);  // one for JSON, one for TensorBoard
    } catch (const Error& error) {
      ++failures;
      CHECK(error.failure() == Failure::io);
      CHECK(std::string(error.what()).find(": No space left on device") != std::string::npos);
    }
    if (failing == 0) calls = files.calls() + 1;
  }
  CHECK(failures == failing - 1);
}
