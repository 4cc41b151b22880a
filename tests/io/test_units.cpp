#include "io/units.h"

#include <doctest/doctest.h>

using namespace bertrand::io;

TEST_CASE("numbers are shown with three digits and a unit") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(0.25) == "0.25");
  CHECK(count_text(950) == "950");
  CHECK(count_text(999.7) == "1k");
  CHECK(count_text(12345) == "12.3k");
  CHECK(count_text(999'499) == "999k");
  CHECK(count_text(999'999) == "1M");
  CHECK(count_text(4.56e6) == "4.56M");
  CHECK(bytes_text(512) == "512 B");
  CHECK(bytes_text(1.76e9) == "1.76 GB");
  CHECK(bytes_text(2e15) == "2e+03 TB");
}

TEST_CASE("durations are shown as clocks show them") {
  CHECK(duration_text(0) == "0s");
  CHECK(duration_text(59.4) == "59s");
  CHECK(duration_text(59.6) == "1:00");
  CHECK(duration_text(725) == "12:05");
  CHECK(duration_text(8045) == "2:14:05");
  CHECK(duration_text(-1) == "?");
}
