#include "masked_softmax/masked_softmax.h"

#include <cmath>
#include <limits>

#include "grader.h"

const char* const kHint =
    "skip hidden entries in the maximum, in the sum and in the result; adding −10000 to them is not enough, and with "
    "nothing visible there is nothing to divide by";

void check(grader::Grader& grader) {
  const auto at = [&](const char* what, const std::vector<double>& x, const std::vector<bool>& visible,
                      const std::vector<double>& expected) {
    grader.begin(what);
    grader.entries("", masked_softmax(x, visible), expected);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN(), third = 1.0 / 3;
  at("all visible", {0, 0, 0}, {true, true, true}, {third, third, third});
  at("log 1, log 2, log 5", {0, std::log(2), std::log(5)}, {true, true, true}, {0.125, 0.25, 0.625});
  at("the middle is hidden", {0, 7, std::log(3)}, {true, false, true}, {0.25, 0, 0.75});
  at("large numbers", {1000, 1000 + std::log(3), -1000}, {true, true, true}, {0.25, 0.75, 0});
  at("small numbers", {-1000, -1000}, {true, true}, {0.5, 0.5});
  at("a hidden entry is huge", {1, 1e6, 1}, {true, false, true}, {0.5, 0, 0.5});
  at("a hidden entry is NaN", {1, nan, 1}, {true, false, true}, {0.5, 0, 0.5});
  at("one is visible", {3, -5, 4}, {false, true, false}, {0, 1, 0});
  at("nothing is visible", {1, 2, 3}, {false, false, false}, {0, 0, 0});
}
