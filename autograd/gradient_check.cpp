#include "autograd/gradient_check.h"

#include <algorithm>
#include <cmath>

namespace bertrand {
namespace {

constexpr double kStep = 1e-5, kTolerance = 1e-6;

/// Σ y · weights, with weights between 0.5 and 1.5 that follow from the number of the entry.
Variable weighted_sum(const Variable& y) {
  std::vector<double> weights(static_cast<std::size_t>(y.value().elements()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 1 + 0.5 * std::sin(1 + 2.4 * static_cast<double>(i));
  return sum(mul(y, Variable(ops::from_host(weights, y.shape(), y.value().backend()))));
}

}  // namespace

std::string WrongEntry::text() const {
  return fmt::format("input {}, entry {} (x = {:.6g}): backward says {:.9g}, differences say {:.9g}", input, entry, x,
                     backward, differences);
}

std::vector<WrongEntry> check_gradient(const std::function<Variable(const std::vector<Variable>&)>& f,
                                       const std::vector<Tensor>& inputs) {
  std::vector<Variable> variables;
  for (const Tensor& input : inputs) {
    check(input.dtype() == DType::f64, "check_gradient: expected inputs of f64, got {}", name_of(input.dtype()));
    variables.emplace_back(ops::copy(input), /*requires_grad=*/true);
  }
  backward(weighted_sum(f(variables)));

  const NoGrad guard;
  std::vector<WrongEntry> wrong;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check(static_cast<bool>(variables[i].grad()), "check_gradient: expected a gradient for input {}, got none", i);
    const std::vector<double> gradient = ops::to_host<double>(variables[i].grad()),
                              at = ops::to_host<double>(inputs[i]);
    for (std::size_t j = 0; j < at.size(); ++j) {
      const auto loss_at = [&](double x) {
        std::vector<double> moved = at;
        moved[j] = x;
        std::vector<Variable> all = variables;
        all[i] = Variable(ops::from_host(moved, inputs[i].shape(), inputs[i].backend()));
        return ops::item(weighted_sum(f(all)).value());
      };
      const double differences = (loss_at(at[j] + kStep) - loss_at(at[j] - kStep)) / (2 * kStep);
      const double allowed = kTolerance * std::max({1.0, std::abs(differences), std::abs(gradient[j])});
      if (!(std::abs(gradient[j] - differences) <= allowed))  // NaN is wrong too
        wrong.push_back({i, static_cast<Dim>(j), at[j], gradient[j], differences});
    }
  }
  return wrong;
}

}  // namespace bertrand
