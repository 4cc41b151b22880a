#include "bert/report/samples.h"

#include <doctest/doctest.h>

#include <string>

using namespace bertrand;

namespace {

std::string line(int step, const std::string& guess, const std::string& truth = "b") {
  return fmt::format(
             R"({{"step":{},"examples":[{{"tokens":["[CLS]","[MASK]"],"masked":[{{"position":1,"truth":"{}","probability":0.25,"guesses":[["{}",0.5]]}}]}}]}})",
             step, truth, guess) +
         "\n";
}

}  // namespace

TEST_CASE("samples have the first and the last line, and others evenly between them") {
  std::string lines;
  for (int step = 1; step <= 9; ++step) lines += line(step, fmt::format("g{}", step));
  std::size_t damaged = 1;
  const io::Json samples = report::samples_of(lines, 3, damaged);
  CHECK(damaged == 0);
  CHECK(samples["steps"] == io::Json({1, 5, 9}));
  const io::Json& mask = samples["examples"][0]["masked"][0];
  CHECK(mask["truth"] == "b");
  CHECK(mask["probabilities"].size() == 3);
  CHECK(mask["guesses"][2][0][0] == "g9");
  CHECK(report::samples_of(line(4, "x"), 3, damaged)["steps"] == io::Json({4}));
  CHECK(report::samples_of(lines, 2, damaged)["steps"] == io::Json({1, 9}));
  CHECK(report::samples_of(lines, 1, damaged)["steps"] == io::Json({9}));
}

TEST_CASE("lines that are damaged or of other examples are counted and left out") {
  std::size_t damaged = 0;
  std::string far = line(2, "x"), fraction = far;
  far.replace(far.find("2,"), 1, "1e300");
  fraction.replace(fraction.find("position\":1") + 10, 1, "-1.5e30");
  std::string unanswered = line(2, "x");
  unanswered.erase(unanswered.find(",\"probability"),
                   std::string(",\"probability\":0.25,\"guesses\":[[\"x\",0.5]]").size());
  const std::string lines = "{\n" + line(1, "x") + "{\"step\":2}\n" + far + fraction + unanswered +
                            line(3, "x", "other") + line(4, "y") + "{\"step\":5,\"exa";
  const io::Json samples = report::samples_of(lines, 6, damaged);
  CHECK(damaged == 7);
  CHECK(samples["steps"] == io::Json({1, 4}));
  CHECK(report::samples_of("", 6, damaged).empty());
  CHECK(damaged == 0);
}
