#include "apps/cli/flags.h"
#include "support/refusal.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace bertrand;
using namespace bertrand::cli;

namespace {

template <class T>
std::string refusal(const std::string& text, const Range<T>& range) {
  return support::refusal(Failure::usage, [&] { parse_number("--x", text, range); });
}

}  // namespace

TEST_CASE("whole numbers may be written with an exponent, others are refused with the range") {
  const Range<std::int64_t> range{1, 1'000'000};
  CHECK(parse_number<std::int64_t>("--x", "1", range) == 1);
  CHECK(parse_number<std::int64_t>("--x", "100000", range) == 100'000);
  CHECK(parse_number<std::int64_t>("--x", "1e3", range) == 1000);
  CHECK(parse_number<std::int64_t>("--x", "2.5E2", range) == 250);
  CHECK(parse_number<std::int64_t>("--x", "3.0", range) == 3);
  for (const char* text : {"0", "-1", "1e7", "1.5", "1e-3", "nan", "inf", "", " 1", "1 ", "0x10", "1e", "1q", "1,000",
                           "99999999999999999999", "1e300"}) {
    CAPTURE(text);
    CHECK(refusal(text, range) == fmt::format("--x: expected a whole number, 1 to 1000000, got \"{}\"", text));
  }
  CHECK(refusal<std::int64_t>("1e19", {1}) == "--x: expected a whole number, at least 1, got \"1e19\"");
  CHECK(parse_number<std::uint64_t>("--x", "18446744073709551615", {0}) == 18446744073709551615u);
}

TEST_CASE("whole numbers may be written in thousands, millions and thousands of millions") {
  const auto parsed = [](const std::string& text) { return parse_number<std::int64_t>("--x", text, {1}); };
  CHECK(parsed("1k") == 1000);
  CHECK(parsed("1000k") == 1'000'000);
  CHECK(parsed("2.5M") == 2'500'000);
  CHECK(parsed("3G") == 3'000'000'000);
  CHECK(parsed("1.5e3k") == 1'500'000);
  CHECK(parse_number<int>("--x", "2147483647", {1}) == 2147483647);
  for (const char* text : {"k", "1kk", "1K", "1 k", "1.0005k", "0k", "-1k", "1k1", "1e300k", "9007200G"}) {
    CAPTURE(text);
    CHECK_FALSE(refusal<std::int64_t>(text, {1}).empty());
  }
  CHECK_FALSE(refusal<int>("3G", {1}).empty());
}

TEST_CASE("numbers are refused where they are none, not finite or out of range") {
  const Range<double> range{0.0, 1.0};
  CHECK(parse_number<double>("--x", "0.5", range) == 0.5);
  CHECK(parse_number<double>("--x", "1e-3", range) == 1e-3);
  CHECK(parse_number<double>("--x", "1", range) == 1);
  for (const char* text : {"nan", "-nan", "inf", "-0.1", "1.1", "0.5x", "half", ""}) {
    CAPTURE(text);
    CHECK(refusal(text, range) == fmt::format("--x: expected a number, 0 to 1, got \"{}\"", text));
  }
}

TEST_CASE("help names the kind of value, the range and the default") {
  CLI::App app;
  std::int64_t steps = 7;
  double rate = 0.25;
  int shape = 1;
  number_flag(app, "--steps", steps, Range<std::int64_t>{1}, "length in steps");
  number_flag(app, "--rate", rate, Range<double>{0.0, 1.0}, "share", "none");
  choice_flag(app, "--shape", shape, {{"round", 0}, {"square", 1}}, "of the thing");
  const std::string help = app.help();
  CHECK(help.find("--steps INT") != std::string::npos);
  CHECK(help.find("length in steps (at least 1; default 7)") != std::string::npos);
  CHECK(help.find("--rate FLOAT") != std::string::npos);
  CHECK(help.find("share (0 to 1; default none)") != std::string::npos);
  CHECK(help.find("of the thing (round, square; default square)") != std::string::npos);
}

TEST_CASE("a choice that is none names all") {
  CLI::App app;
  int shape = 1;
  choice_flag(app, "--shape", shape, {{"round", 0}, {"square", 1}}, "of the thing");
  app.parse("--shape round");
  CHECK(shape == 0);
  CHECK_THROWS_WITH_AS(app.parse("--shape oval"), "--shape: expected one of round, square, got \"oval\"", Error);
}
