#include "io/npy.h"

#include <doctest/doctest.h>

#include <array>

using bertrand::io::npy_header;

// numpy.lib.format: magic, version 1.0, the length of the rest in two bytes, a Python literal of a dictionary with
// these three keys in this order, spaces, a newline; in all a multiple of 64.
TEST_CASE("the header of an array is that of NumPy's format 1.0") {
  const std::string header = npy_header(std::array<std::size_t, 2>{2, 384});
  REQUIRE(header.size() == 128);
  CHECK(header.substr(0, 6) == "\x93NUMPY");
  CHECK(header.substr(6, 4) == std::string("\x01\x00\x76\x00", 4));
  CHECK(header.substr(10).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 384), }  "));
  CHECK(header.back() == '\n');
  CHECK(npy_header(std::array<std::size_t, 1>{7}).find("'shape': (7,), }") != std::string::npos);
  for (std::size_t rows = 1; rows < 1'000'000'000'000; rows *= 10)
    CHECK(npy_header(std::array{rows, rows}).size() % 64 == 0);
}
