#include "io/crc32c.h"

#include <doctest/doctest.h>

#include <string>

using namespace bertrand::io;

TEST_CASE("CRC-32C of the test vectors of RFC 3720") {
  CHECK(crc32c(std::string_view("123456789")) == 0xE3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  CHECK(crc32c(ascending) == 0x46DD794E);
  CHECK(crc32c(std::string_view()) == 0);
}

TEST_CASE("the processor's instruction and the tables give the same CRC, from any place and in parts") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes.push_back(static_cast<char>(i * 37 + i / 7));
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; begin + size <= bytes.size(); size += 13) {
      const std::string_view part = std::string_view(bytes).substr(begin, size);
      CHECK(crc32c(part) == crc32c_by_table(part));
      CHECK(crc32c(part.substr(size / 2), crc32c(part.substr(0, size / 2))) == crc32c(part));
    }
  }
}

TEST_CASE("the CRC of two runs of bytes is that of both end to end") {
  std::string bytes;
  for (int i = 0; i < 70000; ++i) bytes.push_back(static_cast<char>(i * 37 + i / 7));
  for (const std::size_t place : {0, 1, 2, 255, 4096, 65537, 69999, 70000}) {
    const std::string_view first = std::string_view(bytes).substr(0, place),
                           second = std::string_view(bytes).substr(place);
    CHECK(crc32c_joined(crc32c(first), crc32c(second), second.size()) == crc32c(bytes));
  }
}

TEST_CASE("masking rotates and adds") {
  CHECK(masked(0x12345678) == 0x4F730F40);
  CHECK(masked(0) == 0xA282EAD8);
}
