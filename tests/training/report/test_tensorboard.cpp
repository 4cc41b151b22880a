#include "training/report/tensorboard.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <map>
#include <variant>

#include "io/crc32c.h"
#include "support/program.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

/// A message of protocol buffers: numbers (as raw bits) and byte strings by field.
using Field = std::variant<std::uint64_t, std::string>;
using Message = std::map<int, Field>;

template <class T>
T take(std::string_view& bytes) {
  T value;
  REQUIRE(bytes.size() >= sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}
std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(bytes);
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

Message parse(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const auto tag = take_varint(bytes);
    Field& field = message[static_cast<int>(tag / 8)];
    switch (tag % 8) {
      case 0: field = take_varint(bytes); break;
      case 1: field = take<std::uint64_t>(bytes); break;
      case 5: field = static_cast<std::uint64_t>(take<std::uint32_t>(bytes)); break;
      default: {
        REQUIRE(tag % 8 == 2);
        const auto size = take_varint(bytes);
        REQUIRE(size <= bytes.size());
        field = std::string(bytes.substr(0, size));
        bytes.remove_prefix(size);
      }
    }
  }
  return message;
}
std::string text(const Message& message, int field) { return std::get<std::string>(message.at(field)); }
std::uint64_t number(const Message& message, int field) { return std::get<std::uint64_t>(message.at(field)); }
Message inner(const Message& message, int field) { return parse(text(message, field)); }

std::vector<Message> events_of(const std::filesystem::path& file) {
  const std::string all = support::read_text(file);
  std::string_view rest = all;
  std::vector<Message> events;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<std::uint64_t>(rest);
    REQUIRE(take<std::uint32_t>(rest) == io::masked(io::crc32c(length_bytes)));
    REQUIRE(length + 4 <= rest.size());
    const std::string_view data = rest.substr(0, length);
    rest.remove_prefix(length);
    REQUIRE(take<std::uint32_t>(rest) == io::masked(io::crc32c(data)));
    events.push_back(parse(data));
  }
  return events;
}

}  // namespace

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
  const double nan = std::numeric_limits<double>::quiet_NaN();
  writer.histogram("weights/w", 7, std::vector<double>{-1, 2, 0.55, nan, 0.45, 2});
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
  CHECK(nothing[3 * 29 + 2] == 0);
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
