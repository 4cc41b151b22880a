// Ops that look at one element at a time, rearrange or sum.
#include <algorithm>
#include <functional>
#include <numeric>

#include "autograd/operators.h"
#include "support/op_formulas.h"
#include "support/op_values.h"

namespace bertrand::testing {
namespace {

using I = const Inputs&;
using B = Backend&;
using A = const Arrays&;

/// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
Variable gelu_tanh_composed(const Variable& x) {
  const Variable inner = std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * (x * x * x));
  return 0.5 * (x * (1 + tanh(inner)));
}

double total(const Array& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

constexpr Dim kWidths[] = {1, 15, 16, 17, 31, 33, 100, 769};  // each leaves the vectors another tail

/// A function of two elements, b being repeated over a's leading axes.
struct Operator {
  std::string op;
  Variable (*run)(const Variable&, const Variable&);
  double (*formula)(double, double);
  double keep_away = 0;  ///< the least |input|
};

std::vector<OpCase> binary_cases() {
  const Operator operators[] = {
      {"add", add, [](double a, double b) { return a + b; }},
      {"sub", sub, [](double a, double b) { return a - b; }},
      {"mul", mul, [](double a, double b) { return a * b; }},
      {"div", div, [](double a, double b) { return a / b; }, .5},
  };
  std::vector<OpCase> cases;
  for (const Operator& o : operators) {
    const auto row = [&](std::string what, std::vector<Shape> inputs, double widest = 1) {
      cases.push_back({.op = o.op,
                       .what = std::move(what),
                       .inputs = std::move(inputs),
                       .run = [run = o.run](I x, B) { return run(x[0], x[1]); },
                       .least = -widest,
                       .most = widest,
                       .keep_away = o.keep_away,
                       .formula = [formula = o.formula](A x) { return each(x[0], x[1], formula); }});
    };
    row("equal shapes", {{7, 33}, {7, 33}});
    row("wide inputs", {{40, 41}, {40, 41}}, 200);
    row("a row to every row", {{65, 17}, {17}});
    row("a matrix to every matrix", {{3, 5, 7}, {5, 7}});
    row("a row to thousands", {{3001, 31}, {31}});
    row("many elements", {{50001}, {50001}});
    for (const Dim width : kWidths) row(fmt::format("a row of {}", width), {{5, width}, {width}});
    cases.push_back({.op = o.op,
                     .what = "with itself",
                     .inputs = {{5, 3}},
                     .run = [run = o.run](I x, B) { return run(x[0], x[0]); },
                     .keep_away = o.keep_away,
                     .formula = [formula = o.formula](A x) { return each(x[0], x[0], formula); }});
  }
  return cases;
}

/// A function of one element.
struct Function {
  std::string op;
  Variable (*run)(const Variable&);
  double (*formula)(double);
  double least = -3, most = 3;
  double lowest = -200, highest = 200;  ///< inputs of the wide row: as far as results fit into f16
  double keep_away = 0;                 ///< the least |input|: for a corner or a pole at 0
  std::function<Variable(I, B)> meaning = {};
};

/// A row on usual inputs; one on wide inputs, which finds formulas that overflow or cancel; one for each width.
void add_function(std::vector<OpCase>& cases, const Function& f) {
  const auto row = [&](std::string what, const Shape& shape, double least, double most) {
    cases.push_back({.op = f.op,
                     .what = std::move(what),
                     .inputs = {shape},
                     .run = [run = f.run](I x, B) { return run(x[0]); },
                     .least = least,
                     .most = most,
                     .keep_away = f.keep_away,
                     .meaning = f.meaning,
                     .formula = [formula = f.formula](A x) { return each(x[0], formula); }});
  };
  row("", {4, 41}, f.least, f.most);
  row("wide inputs", {40, 41}, f.lowest, f.highest);
  for (const Dim width : kWidths) row(fmt::format("{} elements", width), {width}, f.least, f.most);
}

std::vector<OpCase> function_cases() {
  const Function functions[] = {
      {.op = "neg", .run = neg, .formula = [](double v) { return -v; }},
      {.op = "exp", .run = exp, .formula = std::exp, .highest = 11},
      {.op = "log", .run = log, .formula = std::log, .least = .1, .lowest = .1},
      {.op = "sqrt", .run = sqrt, .formula = std::sqrt, .least = .1, .lowest = .1},
      {.op = "tanh", .run = tanh, .formula = std::tanh},
      {.op = "relu", .run = relu, .formula = [](double v) { return std::max(v, 0.0); }, .keep_away = 1e-3},
      {.op = "gelu", .run = gelu, .formula = gelu_formula},
      {.op = "gelu_tanh",
       .run = gelu_tanh,
       .formula = gelu_tanh_formula,
       .meaning = [](I x, B) { return gelu_tanh_composed(x[0]); }},
      {.op = "scale",
       .run = [](const Variable& x) { return scale(x, -2.5); },
       .formula = [](double v) { return -2.5 * v; }},
      {.op = "cast",
       .run = [](const Variable& x) { return cast(x, x.value().dtype()); },
       .formula = [](double v) { return v; }},
  };
  std::vector<OpCase> cases;
  for (const Function& f : functions) add_function(cases, f);
  cases.push_back({.op = "gelu",
                   .what = "many elements",
                   .inputs = {{313, 107}},
                   .run = [](I x, B) { return gelu(x[0]); },
                   .least = -4,
                   .most = 4,
                   .formula = [](A x) { return each(x[0], gelu_formula); }});
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

std::vector<OpCase> reshape_cases() {
  return {{.op = "reshape",
           .inputs = {{6, 10}},
           .run =
               [](I x, B) {
                 return reshape(x[0], {4, 15});
               },
           .formula = [](A x) { return x[0]; }}};
}

std::vector<OpCase> slice_cases() {
  return {
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
  };
}

std::vector<OpCase> sum_cases() {
  return {
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
      {.op = "mean",
       .what = "one element",
       .inputs = {{1}},
       .run = [](I x, B) { return mean(x[0]); },
       .formula = [](A x) { return x[0]; }},
  };
}

}  // namespace

std::vector<OpCase> element_cases() {
  std::vector<OpCase> all;
  for (const auto& family : {binary_cases, function_cases, dropout_cases, reshape_cases, slice_cases, sum_cases})
    for (OpCase& c : family()) all.push_back(std::move(c));
  return all;
}

}  // namespace bertrand::testing
