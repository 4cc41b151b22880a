// Losses.
#include <algorithm>

#include "autograd/operators.h"
#include "support/op_formulas.h"
#include "support/op_values.h"

namespace bertrand::testing {
namespace {

using I = const Inputs&;
using B = Backend&;
using A = const Arrays&;

constexpr std::uint64_t kTarget = 8;

OpCase cross_entropy_case(const Shape& shape, bool ignore_some, double denominator) {
  const auto wanted = labels(shape[0], shape[1], ignore_some);
  return {
      .op = "softmax_cross_entropy",
      .what = fmt::format("{}{}", shape, ignore_some ? " with ignored rows" : ""),
      .inputs = {shape},
      .run = [wanted, denominator](I x, B b) { return softmax_cross_entropy(x[0], indices(wanted, b), denominator); },
      .least = -3,
      .most = 3,
      .formula = [wanted, denominator](A x) { return Array{cross_entropy_sum(x[0], wanted) / denominator}; }};
}

OpCase mse_case(const Shape& shape, double denominator, double widest = 1) {
  return {.op = "mse",
          .what = fmt::format("{}, inputs up to {}", shape, widest),
          .inputs = {shape},
          .run = [shape, denominator](
                     I x, B b) { return mse(x[0], constant(shape, x[0].value().dtype(), kTarget, b), denominator); },
          .least = -widest,
          .most = widest,
          .meaning =
              [shape, denominator](I x, B b) {
                const Variable d = x[0] - Variable(constant(shape, x[0].value().dtype(), kTarget, b));
                return sum(d * d) / denominator;
              },
          .formula =
              [shape, denominator](A x) {
                double loss = 0;
                for (const double square : each(x[0], uniform(shape.elements(), kTarget),
                                                [](double v, double t) { return (v - t) * (v - t); }))
                  loss += square;
                return Array{loss / denominator};
              }};
}

/// −t log σ(x) − (1 − t) log(1 − σ(x)), so written that no σ rounds to 0 or 1
double binary_cross_entropy(double x, double t) {
  return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
}

OpCase binary_case(const Shape& shape, double denominator, double widest = 5) {
  return {.op = "binary_cross_entropy_with_logits",
          .what = fmt::format("{}, inputs up to {}", shape, widest),
          .inputs = {shape},
          .run =
              [shape, denominator](I x, B b) {
                return binary_cross_entropy_with_logits(x[0], constant(shape, x[0].value().dtype(), kTarget, b),
                                                        denominator);
              },
          .least = -widest,
          .most = widest,
          .formula =
              [shape, denominator](A x) {
                double loss = 0;
                for (const double one : each(x[0], uniform(shape.elements(), kTarget), binary_cross_entropy))
                  loss += one;
                return Array{loss / denominator};
              }};
}

}  // namespace

std::vector<OpCase> loss_cases() {
  return {
      cross_entropy_case({9, 33}, false, 9),
      cross_entropy_case({9, 33}, true, 6),
      cross_entropy_case({3, 1}, false, 3),
      cross_entropy_case({0, 7}, true, 1),
      cross_entropy_case({5, 769}, true, 4),
      cross_entropy_case({4, 15}, true, 7),
      cross_entropy_case({3001, 17}, true, 2250),
      cross_entropy_case({3, 30'522}, true, 2),
      mse_case({31, 1}, 31),
      mse_case({9001}, 500),
      mse_case({40, 41}, 1640, 200),
      binary_case({6, 4}, 24),
      binary_case({1501, 7}, 1501),
      binary_case({40, 41}, 1640, 200),
  };
}

std::vector<OpCase> large_loss_cases() {
  return {cross_entropy_case({33, 30'522}, true, 24), cross_entropy_case({33, 30'528}, true, 24)};
}

}  // namespace bertrand::testing
