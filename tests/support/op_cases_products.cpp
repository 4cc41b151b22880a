// Matrix products, and rows picked by index.
#include "support/op_formulas.h"
#include "support/op_values.h"

namespace bertrand::testing {
namespace {

using I = const Inputs&;
using B = Backend&;
using A = const Arrays&;

OpCase matmul_case(std::string what, const Product& size) {
  return {.op = "matmul",
          .what = std::move(what),
          .inputs = {{size.rows, size.depth}, {size.depth, size.columns}},
          .run = [](I x, B) { return matmul(x[0], x[1]); },
          .formula = [size](A x) { return product(x[0], x[1], size); }};
}

OpCase linear_case(const Product& size) {
  return {.op = "linear",
          .what = fmt::format("{} rows, {} to {}", size.rows, size.depth, size.columns),
          .inputs = {{size.rows, size.depth}, {size.columns, size.depth}, {size.columns}},
          .run = [](I x, B) { return linear(x[0], x[1], x[2]); },
          .formula = [size](A x) { return affine(x[0], x[1], x[2], size); }};
}

/// An activation as linear takes it, as an op of its own, and as a plain function.
struct Activated {
  const char* name;
  Activation activation;
  Variable (*op)(const Variable&);
  double (*function)(double);
};
constexpr Activated kGelu{"gelu", Activation::gelu, gelu, gelu_formula};
constexpr Activated kGeluTanh{"gelu_tanh", Activation::gelu_tanh, bertrand::gelu_tanh, gelu_tanh_formula};

OpCase activated_linear_case(const Product& size, const Activated& f) {
  return {.op = "linear",
          .what = fmt::format("{}, {} rows, {} to {}", f.name, size.rows, size.depth, size.columns),
          .inputs = {{size.rows, size.depth}, {size.columns, size.depth}, {size.columns}},
          .run = [f](I x, B) { return linear(x[0], x[1], x[2], f.activation); },
          .meaning = [f](I x, B) { return f.op(linear(x[0], x[1], x[2])); },
          .formula = [size, f](A x) { return each(affine(x[0], x[1], x[2], size), f.function); }};
}

struct Picked {
  Dim count, rows, columns;
};
OpCase embedding_case(const Picked& size) {
  return {.op = "embedding",
          .what = fmt::format("{} of {} rows of {}", size.count, size.rows, size.columns),
          .inputs = {{size.rows, size.columns}},
          .run = [size](I x, B b) { return embedding(x[0], indices(some_rows(size.count, size.rows), b)); },
          .formula = [size](A x) { return pick_rows(x[0], some_rows(size.count, size.rows), size.columns); }};
}

}  // namespace

std::vector<OpCase> product_cases() {
  std::vector<OpCase> cases{
      matmul_case("", {13, 40, 21}),
      matmul_case("deeper than a block", {3, 500, 2}),
      matmul_case("thousands of rows", {2001, 17, 31}),
      matmul_case("a column", {33, 100, 1}),
      {.op = "matmul",
       .what = "by itself",
       .inputs = {{7, 7}},
       .run = [](I x, B) { return matmul(x[0], x[0]); },
       .formula =
           [](A x) {
             return product(x[0], x[0], {7, 7, 7});
           }},
  };
  for (const Product& size : {Product{70, 12, 33}, Product{1, 100, 7}, Product{1, 1, 1}, Product{15, 31, 17},
                              Product{33, 769, 15}, Product{2003, 33, 100}, Product{3, 5, 4200}, Product{0, 7, 5}})
    cases.push_back(linear_case(size));
  for (const Activated& f : {kGelu, kGeluTanh})
    for (const Product& size : {Product{20, 12, 33}, Product{15, 100, 1}, Product{1031, 31, 65}, Product{67, 40, 72}})
      cases.push_back(activated_linear_case(size, f));
  cases.push_back(activated_linear_case({5, 500, 17}, kGelu));  // deeper than a block
  for (const Picked& size : {Picked{30, 17, 70}, Picked{1, 1, 1}, Picked{3000, 500, 33}, Picked{0, 4, 5}})
    cases.push_back(embedding_case(size));
  cases.push_back({.op = "gather_rows",
                   .inputs = {{17, 5}},
                   .run = [](I x, B b) { return gather_rows(x[0], indices(some_rows(4, 17), b)); },
                   .formula = [](A x) { return pick_rows(x[0], some_rows(4, 17), 5); }});
  return cases;
}

std::vector<OpCase> large_product_cases() {
  std::vector<OpCase> cases;
  for (const Dim tokens : {4096, 4097}) {
    cases.push_back(linear_case({tokens, 3072, 768}));
    for (const Activated& f : {kGelu, kGeluTanh}) cases.push_back(activated_linear_case({tokens, 768, 3072}, f));
  }
  cases.push_back(embedding_case({32'768, 30'522, 768}));
  return cases;
}

}  // namespace bertrand::testing
