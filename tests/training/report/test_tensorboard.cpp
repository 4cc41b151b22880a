#include "training/report/tensorboard.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "support/event_file.h"
#include "support/program.h"

using namespace bertrand;
using namespace bertrand::training;
using namespace support;

TEST_CASE("an event file holds its version, scalars, texts and the mark of a resumed run") {
  const support::TemporaryDirectory directory;
  EventWriter writer(directory / "");
  writer.resume(101);
  writer.scalar("train/loss", 300, 2.25);
  writer.text("run_config", 5, "**bold**");
  CHECK(writer.path().filename().string().starts_with("events.out.tfevents."));

  const std::vector<Message> events = events_of(writer.path());
  REQUIRE(events.size() == 4);
  CHECK(text(events[0], 3) == "brain.Event:2");
  for (const Message& event : events) {
    const auto bits = number(event, 1);
    double wall_time = 0;
    std::memcpy(&wall_time, &bits, 8);
    CHECK(wall_time > 1.6e9);
  }
  CHECK(number(events[1], 2) == 101);
  CHECK(number(inner(events[1], 7), 1) == 1);

  CHECK(number(events[2], 2) == 300);
  const Message scalar = inner(inner(events[2], 5), 1);
  CHECK(text(scalar, 1) == "train/loss");
  CHECK(number(scalar, 2) == 0x40100000);  // 2.25f

  const Message note = inner(inner(events[3], 5), 1);
  CHECK(text(note, 1) == "run_config");
  CHECK(text(inner(inner(note, 9), 1), 1) == "text");
  const Message tensor = inner(note, 8);
  CHECK(number(tensor, 1) == 7);  // DT_STRING
  CHECK(number(inner(inner(tensor, 2), 2), 1) == 1);
  CHECK(text(tensor, 8) == "**bold**");
}

TEST_CASE("a histogram is 30 rows of left, right and count, as TensorBoard's plugin reads them") {
  const support::TemporaryDirectory directory;
  EventWriter writer(directory / "");
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  // What is not finite is left out, wherever it stands.
  writer.histogram("weights/w", 7, std::vector<double>{nan, -1, 2, 0.55, infinity, 0.45, nan, -infinity, 2});
  writer.histogram("alike", 7, std::vector<double>{3, 3});
  writer.histogram("nothing", 7, std::vector<double>{});
  const std::vector<Message> events = events_of(writer.path());
  REQUIRE(events.size() == 4);
  const auto rows = [&](std::size_t event) {
    const Message value = inner(inner(events[event], 5), 1), tensor = inner(value, 8);
    CHECK(text(inner(inner(value, 9), 1), 1) == "histograms");
    CHECK(number(tensor, 1) == 2);                      // DT_DOUBLE
    CHECK(number(inner(inner(tensor, 2), 2), 1) == 3);  // the last dimension
    const std::string bytes = text(tensor, 4);
    REQUIRE(bytes.size() == 30 * 3 * sizeof(double));
    std::vector<double> numbers(90);
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  };
  const std::vector<double> some = rows(1);
  CHECK(some[0] == -1);
  CHECK(some[2] == 1);
  CHECK(some[1] == doctest::Approx(-0.9));
  CHECK(some[3 * 14 + 2] == 1);
  CHECK(some[3 * 15 + 2] == 1);
  CHECK(some[3 * 29 + 1] == 2);
  CHECK(some[3 * 29 + 2] == 2);
  const std::vector<double> alike = rows(2), nothing = rows(3);
  CHECK(alike[3 * 29] == 3);
  CHECK(alike[3 * 29 + 2] == 2);
  CHECK(alike[2] == 0);
  CHECK(nothing == std::vector<double>(90, 0.0));
  for (std::size_t i = 0; i < 30; ++i) {
    CHECK(some[3 * i] == doctest::Approx(-1 + 0.1 * static_cast<double>(i)));
    CHECK(some[3 * i + 1] == doctest::Approx(-0.9 + 0.1 * static_cast<double>(i)));
  }
}

TEST_CASE("two event files of one process and second do not share a name") {
  const support::TemporaryDirectory directory;
  const EventWriter first(directory / ""), second(directory / "");
  CHECK(first.path() != second.path());
}

TEST_CASE("figures appear under the names that users of TensorBoard know") {
  CHECK(tensorboard_tag("loss") == "train/loss");
  CHECK(tensorboard_tag("learning_rate") == "train/learning_rate");
  CHECK(tensorboard_tag("eval_masked_lm_accuracy") == "eval/masked_lm_accuracy");
  CHECK(tensorboard_tag("tokens_per_second") == "perf/tokens_per_second");
  CHECK(tensorboard_tag("memory_bytes") == "perf/memory_bytes");
}
