// Numbers as bytes.
#include "io/little_endian.h"

#include <doctest/doctest.h>

using namespace bertrand::io;

TEST_CASE("a varint is taken off the front, and one that does not end is none") {
  std::string bytes;
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{300}, UINT64_MAX})
    append_varint(bytes, value);
  CHECK(bytes.size() == 1 + 1 + 2 + kMostVarintBytes);
  std::string_view rest = bytes;
  CHECK(take_varint(rest) == 0);
  CHECK(take_varint(rest) == 127);
  CHECK(take_varint(rest) == 300);
  CHECK(take_varint(rest) == UINT64_MAX);
  CHECK(rest.empty());
  CHECK_FALSE(take_varint(rest).has_value());
  for (const std::string& endless : {std::string("\x80"), std::string(kMostVarintBytes, '\x80') + '\1'}) {
    rest = endless;
    CHECK_FALSE(take_varint(rest).has_value());
    CHECK(rest == endless);  // for the message about it
  }
}

TEST_CASE("a number of fixed width has its lowest byte first") {
  std::string bytes;
  append_fixed(bytes, std::uint32_t{0x04030201});
  CHECK(bytes == "\1\2\3\4");
  CHECK(load_fixed<std::uint16_t>(bytes.data() + 1) == 0x0302);
}
