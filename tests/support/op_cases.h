// The op table: a row for each differentiable op and each shape that is special to it. Everything that is tested of
// every op, on every backend, is tested from here (op_checks.h). BERTRAND_OP=softmax in the environment leaves the rows
// of one op, so that its tests run in seconds: BERTRAND_OP=softmax build/bin/test_autograd -tc="every op*".
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"

namespace bertrand::testing {

using Inputs = std::vector<Variable>;
using Array = std::vector<double>;  ///< the elements of one tensor, row-major
using Arrays = std::vector<Array>;

struct OpCase {
  std::string op;             ///< as declared in autograd/ops.h
  std::string what;           ///< what is special about this row; rows of one op differ in it
  std::vector<Shape> inputs;  ///< of the inputs that are differentiated
  std::function<Variable(const Inputs&, Backend&)> run;
  double least = -1, most = 1;  ///< the range that inputs are drawn from
  double keep_away = 0;         ///< no input is nearer to 0 than this: for ops that have a corner or a pole there
  /// For a fused op: what it means, in plain ops.
  std::function<Variable(const Inputs&, Backend&)> meaning = {};
  /// The result by the formula, in plain loops over doubles.
  std::function<Array(const Arrays&)> formula = {};

  std::string name() const { return what.empty() ? op : op + ", " + what; }
};

/// The families below one after the other.
const std::vector<OpCase>& all_op_cases();
/// Those that BERTRAND_OP names, else all. Throws Error(Failure::usage) if it names an op without a row.
const std::vector<OpCase>& op_cases();

std::vector<OpCase> element_cases();
std::vector<OpCase> product_cases();
std::vector<OpCase> normalization_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> loss_cases();

/// Rows of the shapes that training has: for a real GPU alone, since an emulated one takes too long.
std::vector<OpCase> large_product_cases();
std::vector<OpCase> large_normalization_cases();
std::vector<OpCase> large_attention_cases();
std::vector<OpCase> large_loss_cases();

}  // namespace bertrand::testing
