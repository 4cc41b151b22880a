// How one knows that a gradient is right: it is compared with differences of the function itself.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"

namespace bertrand {

/// An entry of a gradient that differs from (L(x + h) − L(x − h)) / 2h.
struct WrongEntry {
  std::size_t input = 0;  ///< which input of the function
  Dim entry = 0;          ///< place in that input, counted flat
  double x = 0;           ///< its value
  double backward = 0, differences = 0;

  /// "input 0, entry 2 (x = 0.5): backward says 0.25, differences say 0.5"
  std::string text() const;
};

/// Compares the gradients of L = Σ f(inputs) · weights with central differences, entry by entry, and returns those that
/// differ by more than 1e-6 of the larger or of 1. The weights are fixed numbers, different for each entry of f's
/// result, so that mistakes in two entries do not cancel. `inputs`: f64, away from corners of f. Two runs of f for each
/// entry: for small inputs.
std::vector<WrongEntry> check_gradient(const std::function<Variable(const std::vector<Variable>&)>& f,
                                       const std::vector<Tensor>& inputs);

}  // namespace bertrand
