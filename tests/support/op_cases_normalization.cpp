// Softmax and layer normalisation.
#include <functional>

#include "autograd/operators.h"
#include "support/op_formulas.h"
#include "support/op_values.h"

namespace bertrand::testing {
namespace {

using I = const Inputs&;
using B = Backend&;
using A = const Arrays&;

constexpr double kEpsilon = 1e-3;  // large enough to be seen

/// exp(x) / Σ exp(x) as a learner writes it: the product with ones adds up each row and repeats the sum.
Variable softmax_composed(const Variable& x) {
  const Dim columns = x.shape()[1];
  const Variable ones(ops::full({columns, columns}, 1, x.value().dtype(), x.value().backend()));
  const Variable e = exp(x);
  return e / matmul(e, ones);
}

OpCase softmax_case(const Shape& shape) {
  return {.op = "softmax",
          .what = fmt::format("{}", shape),
          .inputs = {shape},
          .run = [](I x, B) { return softmax(x[0]); },
          .least = -3,
          .most = 3,
          .meaning = [](I x, B) { return softmax_composed(x[0]); },
          .formula = [shape](A x) { return softmax_rows(x[0], shape.columns()); }};
}

OpCase layer_norm_case(const Shape& shape) {
  const Shape row{shape.columns()};
  return {.op = "layer_norm",
          .what = fmt::format("{}", shape),
          .inputs = {shape, row, row},
          .run = [](I x, B) { return layer_norm(x[0], x[1], x[2], kEpsilon); },
          .formula = [](A x) { return normalize_rows(x[0], x[1], x[2], kEpsilon); }};
}

OpCase joined_case(const Shape& shape) {
  const Shape row{shape.columns()};
  return {.op = "dropout_add_layer_norm",
          .what = fmt::format("without dropout, {}", shape),
          .inputs = {shape, shape, row, row},
          .run = [](I x, B) { return dropout_add_layer_norm(x[0], x[1], x[2], x[3], {.epsilon = kEpsilon}); },
          .meaning = [](I x, B) { return layer_norm(add(x[0], x[1]), x[2], x[3], kEpsilon); },
          .formula = [](A x) { return normalize_rows(each(x[0], x[1], std::plus<>()), x[2], x[3], kEpsilon); }};
}

OpCase dropped_case(const Shape& shape) {
  const Shape row{shape.columns()};
  return {.op = "dropout_add_layer_norm",
          .what = fmt::format("with dropout, {}", shape),
          .inputs = {shape, shape, row, row},
          .run =
              [shape](I x, B b) {
                return dropout_add_layer_norm(x[0], x[1], x[2], x[3],
                                              {.epsilon = kEpsilon, .dropout = some_dropout(shape[0], b)});
              },
          .meaning = [](I x, B) { return layer_norm(add(masked(x[0]), x[1]), x[2], x[3], kEpsilon); },
          .formula =
              [shape](A x) {
                const Array kept = each(x[0], multipliers(shape), std::multiplies<>());
                return normalize_rows(each(kept, x[1], std::plus<>()), x[2], x[3], kEpsilon);
              }};
}

}  // namespace

std::vector<OpCase> normalization_cases() {
  std::vector<OpCase> cases;
  for (const Dim width : {1, 15, 17, 31, 33, 100, 769}) {
    cases.push_back(softmax_case({5, width}));
    if (width > 1) cases.push_back(layer_norm_case({5, width}));
  }
  cases.push_back(softmax_case({2003, 17}));
  cases.push_back(layer_norm_case({67, 33}));
  cases.push_back(layer_norm_case({2, 3, 20}));
  cases.push_back(layer_norm_case({0, 20}));
  cases.push_back(layer_norm_case({3001, 31}));
  cases.push_back(layer_norm_case({8201, 9}));  // more than 1,024 blocks of 8 rows
  for (const Shape& shape : {Shape{9, 20}, Shape{129, 65}}) cases.push_back(joined_case(shape));
  for (const Shape& shape : {Shape{67, 140}, Shape{2, 15}, Shape{2003, 33}, Shape{17, 768}, Shape{17, 1024}})
    cases.push_back(dropped_case(shape));
  return cases;
}

std::vector<OpCase> large_normalization_cases() {
  return {dropped_case({257, 768}), dropped_case({257, 1024}), dropped_case({8195, 768})};
}

}  // namespace bertrand::testing
