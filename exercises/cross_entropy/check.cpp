#include "cross_entropy/cross_entropy.h"

#include <cmath>

#include "grader.h"

const char* const kHint =
    "divide by the number of rows that have a label, not by all rows, and by nothing if there is none; take the "
    "maximum "
    "out before exp";

void check(grader::Grader& grader) {
  const auto at = [&](const char* what, const std::vector<double>& logits, const std::vector<int>& labels, double loss,
                      const std::vector<double>& gradient) {
    grader.begin(what);
    const CrossEntropy got = cross_entropy(logits, labels, static_cast<int>(logits.size() / labels.size()));
    grader.entry("the loss", got.loss, loss);
    grader.entries("dlogits", got.dlogits, gradient);
  };
  // Softmax of 0, log 2, log 5 is 1/8, 2/8, 5/8.
  const double two = std::log(2), five = std::log(5), eight = std::log(8);
  at("one row", {0, two, five}, {1}, eight - two, {0.125, 0.25 - 1, 0.625});
  at("two rows", {0, two, five, 0, 0, 0}, {2, 0}, (eight - five + std::log(3)) / 2,
     {0.0625, 0.125, 0.3125 - 0.5, 1.0 / 6 - 0.5, 1.0 / 6, 1.0 / 6});
  at("the second of two rows is ignored", {0, two, five, 9, 8, 7}, {0, -100}, eight, {0.125 - 1, 0.25, 0.625, 0, 0, 0});
  at("three of four rows are ignored", {1, 2, 3, 4, 0, 0, 5, 6}, {-100, -1, 1, -100}, two,
     {0, 0, 0, 0, 0.5, -0.5, 0, 0});
  at("all rows are ignored", {1, 2, 3, 4}, {-100, -100}, 0, {0, 0, 0, 0});
  at("large logits", {1000, 1000, -1000, -1000 + two}, {0, 1}, (two + std::log(3) - two) / 2,
     {-0.25, 0.25, 1.0 / 6, 1.0 / 3 - 0.5});
}
