#include "io/protobuf.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;

namespace {

std::string refusal(std::string_view message) {
  return support::refusal(Failure::model, [&] {
    ProtoReader reader(message, "f@7", Failure::model);
    while (reader.next()) {
    }
  });
}

}  // namespace

TEST_CASE("a message is written as protobuf documents it, and read back") {
  std::string inner, message;
  append_number(inner, 1, 150);
  CHECK(inner == "\x08\x96\x01");  // the example of the encoding guide
  append_bytes(message, 2, "testing");
  CHECK(message == "\x12\x07testing");
  append_bytes(message, 3, inner);
  append_float(message, 4, 0.5f);
  append_double(message, 1000, -2.0);
  ProtoReader reader(message, "f", Failure::model);
  REQUIRE(reader.next());
  CHECK(reader.is(2, WireType::bytes));
  CHECK(reader.bytes() == "testing");
  REQUIRE(reader.next());
  ProtoReader nested = reader.message();
  REQUIRE(nested.next());
  CHECK(nested.varint() == 150);
  CHECK_FALSE(nested.next());
  REQUIRE(reader.next());
  CHECK(reader.is(4, WireType::fixed32));
  CHECK(reader.fixed<float>() == 0.5f);
  REQUIRE(reader.next());
  CHECK(reader.field() == 1000);
  CHECK(reader.fixed<double>() == -2.0);
  CHECK_FALSE(reader.next());
  CHECK(bytes_field_size(2, 7) == 9);
  CHECK(bytes_field_size(2, 127) == 1 + 1 + 127);
  CHECK(bytes_field_size(2, 128) == 1 + 2 + 128);
  CHECK(bytes_field_size(1000, 300) == 2 + 2 + 300);
}

TEST_CASE("the largest field number and the largest value are read, and no larger number is a field's") {
  constexpr int kMost = 536'870'911;
  constexpr auto kMostValue = std::numeric_limits<std::uint64_t>::max();
  std::string message;
  append_number(message, kMost, kMostValue);
  ProtoReader reader(message, "f", Failure::model);
  REQUIRE(reader.next());
  CHECK(reader.is(kMost, WireType::varint));
  CHECK(reader.varint() == kMostValue);
  CHECK_FALSE(reader.next());
  message.clear();
  append_number(message, kMost + 1, 0);
  CHECK(refusal(message) == "f@7: protobuf: expected a field number from 1 to 536870911, got 536870912");
}

TEST_CASE("floats that are repeated are read packed and one by one, and a part of one is refused") {
  const auto floats = [](const std::string& packed) {
    std::string message;
    append_bytes(message, 1, packed);
    append_float(message, 1, -2.5f);
    std::vector<float> values;
    ProtoReader reader(message, "f@7", Failure::model);
    while (reader.next())
      if (reader.has_floats(1)) reader.each_float([&](float value) { values.push_back(value); });
    return values;
  };
  CHECK(floats("") == std::vector<float>{-2.5f});
  CHECK(floats(std::string("\0\0\x80\x3F\0\0\0\x3F", 8)) == std::vector<float>{1, 0.5f, -2.5f});
  CHECK(support::refusal(Failure::model, [&] { floats("12345"); }) ==
        "f@7: protobuf: expected floats of 4 bytes, got 5 bytes");
}

TEST_CASE("values that nobody asks for are skipped, and repeated numbers are read packed and one by one") {
  std::string packed, message;
  for (const std::uint64_t value : {1, 128, 300}) append_varint(packed, value);
  append_double(message, 9, 1);
  append_bytes(message, 1, packed);
  append_float(message, 9, 1);
  append_number(message, 1, 7);
  std::vector<std::uint64_t> values;
  ProtoReader reader(message, "f", Failure::model);
  while (reader.next())
    if (reader.has_varints(1)) reader.each_varint([&](std::uint64_t value) { values.push_back(value); });
  CHECK(values == std::vector<std::uint64_t>{1, 128, 300, 7});
}

TEST_CASE("a message that is not well formed names its place, what was expected and what was found") {
  CHECK(refusal("\x0A\x05"
                "abc") == "f@7: protobuf: expected 5 bytes, got 3 to the end of the message");
  CHECK(refusal("\x08\x80") == "f@7: protobuf: expected a number, got the end of the message");
  CHECK(refusal(std::string(10, '\xFF') + '\x01') ==
        "f@7: protobuf: expected a number of at most 10 bytes, got a longer one");
  CHECK(refusal(std::string(1, '\0')) == "f@7: protobuf: expected a field number from 1 to 536870911, got 0");
  CHECK(refusal("\x0B") == "f@7: protobuf: expected a wire type 0, 1, 2 or 5, got 3");
}
