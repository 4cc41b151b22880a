#include "bert/data/tf_example.h"

#include <doctest/doctest.h>

#include <random>

#include "io/error.h"
#include "support/tf_example.h"

using namespace bertrand::data;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;

namespace {

std::string error_of(std::string_view message) {
  try {
    parse_example(message, "f@12");
  } catch (const bertrand::Error& error) {
    CHECK(error.failure() == bertrand::Failure::input);
    CHECK(std::string(error.what()).starts_with("f@12: example: "));
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an example comes back as it was") {
  const Features features{{"empty", Ints{}},
                          {"floats", Floats{1, -0.5f, 3e30f}},
                          {"ints", Ints{0, 1, 127, 128, -1, INT64_MIN, INT64_MAX}},
                          {"text", Strings{"", "a", std::string(300, 'x')}}};
  CHECK(parse_example(support::serialize_example(features), "f@0") == features);
  CHECK(parse_example("", "f@0").empty());
}

TEST_CASE("the bytes are those of protobuf") {
  // Example{features{feature{key:"a" value{int64_list{value:[1, 300]}}}}} by Google's protobuf.
  CHECK(support::serialize_example({{"a", Ints{1, 300}}}) == std::string("\x0a\x0e\x0a\x0c\x0a\x01"
                                                                         "a\x12\x07\x1a\x05\x0a\x03\x01\xac\x02",
                                                                         16));
}

TEST_CASE("lists that are not packed, unknown fields and features given twice are read as protobuf does") {
  // int64_list{value: 5 value: 6} unpacked, with an unknown field 9 in the feature.
  const std::string feature("\x1a\x04\x08\x05\x08\x06\x48\x01", 8);
  const std::string entry = std::string(
                                "\x0a\x01"
                                "a\x12\x08",
                                5) +
                            feature;
  const std::string features = std::string("\x0a\x0d", 2) + entry + std::string("\x0a\x0d", 2) + entry;
  CHECK(parse_example(std::string("\x0a\x1e", 2) + features, "f@0") == Features{{"a", Ints{5, 6}}});
  CHECK(parse_example(std::string("\x10\x01\x0a\x1e", 4) + features, "f@0") == Features{{"a", Ints{5, 6}}});
}

TEST_CASE("a message that ends too early or is none names its place") {
  CHECK(error_of("\x0a\x05"
                 "a")
            .find("expected 5 bytes, got 1") != std::string::npos);
  CHECK(error_of("\x0a").find("got the end of the message") != std::string::npos);
  CHECK(error_of(std::string(11, '\xFF')).find("at most 10 bytes") != std::string::npos);
  CHECK(error_of("\x0b").find("wire type") != std::string::npos);
  CHECK(error_of(std::string("\x00\x00", 2)).find("field number") != std::string::npos);
}

TEST_CASE("any changed byte and any cut gives an example or an error, never a crash") {
  const std::string good =
      support::serialize_example({{"f", Floats{1, 2}}, {"i", Ints{1, 2, 300, 70000}}, {"s", Strings{"ab", "c"}}});
  for (std::size_t size = 0; size < good.size(); ++size) error_of(good.substr(0, size));
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      error_of(bad);
    }
  }
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (int k = 0; k < 4; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    error_of(bad);
  }
}
