#include "io/units.h"

#include <doctest/doctest.h>

#include <limits>

#include "io/ascii.h"
#include "io/numbers.h"
#include "support/refusal.h"

using namespace bertrand::io;

TEST_CASE("numbers are shown with three digits and a unit") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(0.25) == "0.25");
  CHECK(count_text(950) == "950");
  CHECK(count_text(999.5) == "1k");
  CHECK(count_text(999.7) == "1k");
  CHECK(count_text(12345) == "12.3k");
  CHECK(count_text(999'499) == "999k");
  CHECK(count_text(999'999) == "1M");
  CHECK(count_text(4.56e6) == "4.56M");
  CHECK(bytes_text(512) == "512 B");
  CHECK(bytes_text(1.76e9) == "1.76 GB");
  CHECK(bytes_text(2e15) == "2e+03 TB");
}

TEST_CASE("what is counted is in the plural unless there is one of it") {
  CHECK(counted(0, "document") == "0 documents");
  CHECK(counted(1, "document") == "1 document");
  CHECK(counted(std::size_t{2}, "bad line") == "2 bad lines");
  CHECK(counted(1, "query") == "1 query");
  CHECK(counted(2, "query") == "2 queries");
  CHECK(counted(3, "micro-batch") == "3 micro-batches");
}

TEST_CASE("a name is a whole number if all of it is one from 0 on that 63 bits can have") {
  CHECK(whole_number("0") == 0);
  CHECK(whole_number("007") == 7);
  CHECK(whole_number("9223372036854775807") == 9223372036854775807);
  for (const char* none : {"", "-1", "7x", "x7", "9223372036854775808"}) CHECK_FALSE(whole_number(none).has_value());
}

TEST_CASE("letters of ASCII are made small, from the first to the last, and nothing else") {
  CHECK(ascii_lower(std::string("@AZ[`az{\xC3\x89")) == "@az[`az{\xC3\x89");
}

TEST_CASE("durations are shown as clocks show them") {
  CHECK(duration_text(0) == "0s");
  CHECK(duration_text(59.4) == "59s");
  CHECK(duration_text(59.6) == "1:00");
  CHECK(duration_text(725) == "12:05");
  CHECK(duration_text(3599) == "59:59");
  CHECK(duration_text(3600) == "1:00:00");
  CHECK(duration_text(8045) == "2:14:05");
  for (const double none : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(duration_text(none) == "?");
}

TEST_CASE("bytes are read with units of powers of ten and of two") {
  CHECK(parse_bytes("--memory", "1000000") == 1'000'000);
  CHECK(parse_bytes("--memory", "1B") == 1);
  CHECK(parse_bytes("--memory", "500MB") == 500'000'000);
  CHECK(parse_bytes("--memory", "8GiB") == std::size_t{8} << 30);
  CHECK(parse_bytes("--memory", "1.5 kB") == 1500);
  CHECK(parse_bytes("--memory", "3KiB") == 3072);
  CHECK(parse_bytes("--memory", "3MiB") == 3 << 20);
  CHECK(parse_bytes("--memory", "3TiB") == std::size_t{3} << 40);
  CHECK(parse_bytes("--memory", "999999TB") == 999'999'000'000'000'000);
  for (const char* bad : {"", "GB", "8 XB", "-1GB", "0", "0.5B", "nan", "1000000TB", "1e30TB"})
    CHECK(support::refusal(bertrand::Failure::usage, [&] {
            parse_bytes("--memory", bad);
          }).starts_with("--memory: expected a number of bytes as 8GiB"));
}
