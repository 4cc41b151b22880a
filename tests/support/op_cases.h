// The op table: a row per differentiable op and per shape that is special to it. Everything that is tested of every op,
// on every backend, is tested from here (op_checks.h).
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
  std::string what;           ///< what is special about this row
  std::vector<Shape> inputs;  ///< those that are differentiated
  std::function<Variable(const Inputs&, Backend&)> run;
  double least = -1, most = 1;  ///< the domain that inputs are drawn from
  double keep_away = 0;         ///< from 0, where the op has a corner
  /// For a fused op: what it means, in plain ops.
  std::function<Variable(const Inputs&, Backend&)> meaning = {};
  /// The result by the formula, in plain loops over doubles.
  std::function<Array(const Arrays&)> formula = {};

  std::string name() const { return what.empty() ? op : op + ", " + what; }
};

/// All rows, the families below one after the other.
const std::vector<OpCase>& op_cases();

std::vector<OpCase> element_cases();
std::vector<OpCase> product_cases();
std::vector<OpCase> normalization_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> loss_cases();

/// Rows of the shapes that training has: for a real card alone, since they take an emulated one too long.
std::vector<OpCase> large_product_cases();
std::vector<OpCase> large_normalization_cases();
std::vector<OpCase> large_attention_cases();
std::vector<OpCase> large_loss_cases();

}  // namespace bertrand::testing
