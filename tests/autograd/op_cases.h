// The op table: a row per differentiable op. Everything that is tested of every op is tested from here.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"

namespace bertrand::testing {

using Inputs = std::vector<Variable>;

struct OpCase {
  std::string op;             ///< as declared in autograd/ops.h
  std::string what;           ///< what is special about this row
  std::vector<Shape> inputs;  ///< those that are differentiated
  std::function<Variable(const Inputs&, Backend&)> run;
  /// For a fused op: what it means, in plain ops.
  std::function<Variable(const Inputs&, Backend&)> meaning = {};
  double least = -1, most = 1;  ///< the domain that inputs are drawn from
  double keep_away = 0;         ///< from 0, where the op has a corner

  std::string name() const { return what.empty() ? op : op + ", " + what; }
};

const std::vector<OpCase>& op_cases();

/// Deterministic values of a case's inputs.
Inputs make_inputs(const OpCase& c, DType dtype, Backend& backend);

/// Σ result ∘ fixed random weights: a scalar whose gradient reaches every entry of every input.
Variable project(const Variable& result);

/// The result, then the gradient of every input, as one list.
std::vector<std::vector<double>> run_both_ways(const OpCase& c, DType dtype, Backend& backend, bool by_meaning = false);

}  // namespace bertrand::testing
