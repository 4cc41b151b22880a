// Ops that look at one element at a time, rearrange or sum.
#include <algorithm>
#include <functional>
#include <numeric>

#include "support/op_formulas.h"
#include "support/op_values.h"

namespace bertrand::testing {
namespace {

using I = const Inputs&;
using B = Backend&;
using A = const Arrays&;

Variable plus(const Variable& x, double c) {
  return add(x, Variable(ops::full(x.shape(), c, x.value().dtype(), x.value().backend())));
}

/// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
Variable gelu_tanh_composed(const Variable& x) {
  const Variable cubed = mul(mul(x, x), x);
  const Variable inner = scale(add(x, scale(cubed, 0.044715)), std::sqrt(2 / 3.14159265358979323846));
  return scale(mul(x, plus(tanh(inner), 1)), 0.5);
}

double total(const Array& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

/// A row for each width that leaves the vectors another tail.
template <class MakeCase>
void for_widths(std::vector<OpCase>& cases, const MakeCase& make) {
  for (const Dim width : {1, 15, 16, 17, 31, 33, 100, 769}) cases.push_back(make(width));
}

std::vector<OpCase> binary_cases() {
  const auto run_add = [](I x, B) { return add(x[0], x[1]); };
  const auto run_mul = [](I x, B) { return mul(x[0], x[1]); };
  const auto sums = [](A x) { return each(x[0], x[1], std::plus<>()); };
  const auto products = [](A x) { return each(x[0], x[1], std::multiplies<>()); };
  std::vector<OpCase> cases{
      {.op = "add", .what = "equal shapes", .inputs = {{7, 33}, {7, 33}}, .run = run_add, .formula = sums},
      {.op = "add", .what = "a row to every row", .inputs = {{65, 17}, {17}}, .run = run_add, .formula = sums},
      {.op = "add", .what = "a matrix to every matrix", .inputs = {{3, 5, 7}, {5, 7}}, .run = run_add, .formula = sums},
      {.op = "add", .what = "a row to thousands", .inputs = {{3001, 31}, {31}}, .run = run_add, .formula = sums},
      {.op = "add", .what = "many elements", .inputs = {{50001}, {50001}}, .run = run_add, .formula = sums},
      {.op = "add",
       .what = "to itself",
       .inputs = {{5, 3}},
       .run = [](I x, B) { return add(x[0], x[0]); },
       .formula = [](A x) { return each(x[0], [](double v) { return 2 * v; }); }},
      {.op = "mul", .what = "equal shapes", .inputs = {{7, 33}, {7, 33}}, .run = run_mul, .formula = products},
      {.op = "mul", .what = "a row with thousands", .inputs = {{3001, 31}, {31}}, .run = run_mul, .formula = products},
      {.op = "mul",
       .what = "by itself",
       .inputs = {{5, 3}},
       .run = [](I x, B) { return mul(x[0], x[0]); },
       .formula = [](A x) { return each(x[0], [](double v) { return v * v; }); }},
  };
  for_widths(cases, [&](Dim w) {
    return OpCase{.op = "mul",
                  .what = fmt::format("a row of {}", w),
                  .inputs = {{5, w}, {w}},
                  .run = run_mul,
                  .formula = products};
  });
  return cases;
}

std::vector<OpCase> function_cases() {
  const auto erf = [](I x, B) { return gelu(x[0]); };
  const auto erf_formula = [](A x) { return each(x[0], gelu_erf); };
  std::vector<OpCase> cases{
      {.op = "scale",
       .inputs = {{3, 100}},
       .run = [](I x, B) { return scale(x[0], -2.5); },
       .formula = [](A x) { return each(x[0], [](double v) { return -2.5 * v; }); }},
      {.op = "scale",
       .what = "many elements",
       .inputs = {{40001}},
       .run = [](I x, B) { return scale(x[0], 3); },
       .formula = [](A x) { return each(x[0], [](double v) { return 3 * v; }); }},
      {.op = "tanh",
       .inputs = {{4, 41}},
       .run = [](I x, B) { return tanh(x[0]); },
       .least = -3,
       .most = 3,
       .formula = [](A x) { return each(x[0], [](double v) { return std::tanh(v); }); }},
      {.op = "relu",
       .inputs = {{4, 41}},
       .run = [](I x, B) { return relu(x[0]); },
       .keep_away = 1e-3,
       .formula = [](A x) { return each(x[0], [](double v) { return std::max(v, 0.0); }); }},
      {.op = "gelu",
       .what = "many elements",
       .inputs = {{313, 107}},
       .run = erf,
       .least = -4,
       .most = 4,
       .formula = erf_formula},
      {.op = "gelu_tanh",
       .inputs = {{4, 41}},
       .run = [](I x, B) { return gelu_tanh(x[0]); },
       .least = -4,
       .most = 4,
       .meaning = [](I x, B) { return gelu_tanh_composed(x[0]); },
       .formula = [](A x) { return each(x[0], gelu_tanh); }},
      {.op = "cast",
       .what = "to its own type",
       .inputs = {{6, 7}},
       .run = [](I x, B) { return cast(x[0], x[0].value().dtype()); },
       .formula = [](A x) { return x[0]; }},
  };
  for_widths(cases, [&](Dim w) {
    return OpCase{.op = "gelu",
                  .what = fmt::format("{} elements", w),
                  .inputs = {{w}},
                  .run = erf,
                  .least = -4,
                  .most = 4,
                  .formula = erf_formula};
  });
  return cases;
}

std::vector<OpCase> dropout_cases() {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{9, 300}, Shape{1, 1}, Shape{3, 769}, Shape{2003, 33}})
    cases.push_back({.op = "dropout",
                     .what = fmt::format("{}", shape),
                     .inputs = {shape},
                     .run = [shape](I x, B b) { return dropout(x[0], some_dropout(shape[0], b)); },
                     .meaning = [](I x, B) { return masked(x[0]); },
                     .formula = [shape](A x) { return each(x[0], multipliers(shape), std::multiplies<>()); }});
  return cases;
}

std::vector<OpCase> shape_cases() {
  return {
      {.op = "reshape",
       .inputs = {{6, 10}},
       .run =
           [](I x, B) {
             return reshape(x[0], {4, 15});
           },
       .formula = [](A x) { return x[0]; }},
      {.op = "slice",
       .what = "of the first axis",
       .inputs = {{9, 5, 3}},
       .run = [](I x, B) { return slice(x[0], 0, 2, 7); },
       .formula =
           [](A x) {
             return cut(x[0], {1, 9, 15, 2, 7});
           }},
      {.op = "slice",
       .what = "of a middle axis",
       .inputs = {{4, 9, 3}},
       .run = [](I x, B) { return slice(x[0], 1, 3, 8); },
       .formula =
           [](A x) {
             return cut(x[0], {4, 9, 3, 3, 8});
           }},
      {.op = "slice",
       .what = "of the last axis",
       .inputs = {{4, 9}},
       .run = [](I x, B) { return slice(x[0], -1, 8, 9); },
       .formula =
           [](A x) {
             return cut(x[0], {4, 9, 1, 8, 9});
           }},
      {.op = "slice",
       .what = "of thousands of rows",
       .inputs = {{4001, 15}},
       .run = [](I x, B) { return slice(x[0], 1, 3, 14); },
       .formula =
           [](A x) {
             return cut(x[0], {4001, 15, 1, 3, 14});
           }},
      {.op = "sum",
       .inputs = {{33, 300}},
       .run = [](I x, B) { return sum(x[0]); },
       .formula = [](A x) { return Array{total(x[0])}; }},
      {.op = "sum",
       .what = "one element",
       .inputs = {{1}},
       .run = [](I x, B) { return sum(x[0]); },
       .formula = [](A x) { return x[0]; }},
      {.op = "sum",
       .what = "many elements",
       .inputs = {{70003}},
       .run = [](I x, B) { return sum(x[0]); },
       .formula = [](A x) { return Array{total(x[0])}; }},
      {.op = "mean",
       .inputs = {{7, 11}},
       .run = [](I x, B) { return mean(x[0]); },
       .formula = [](A x) { return Array{total(x[0]) / 77}; }},
  };
}

}  // namespace

std::vector<OpCase> element_cases() {
  std::vector<OpCase> all;
  for (const auto& family : {binary_cases, function_cases, dropout_cases, shape_cases})
    for (OpCase& c : family()) all.push_back(std::move(c));
  return all;
}

}  // namespace bertrand::testing
