// Exercise: a bug. This op computes the right value, and the model that used it did learn, but never as well as others.
// One line of its derivative is wrong. Find it with the gradient check, and mend it.
//
// It is RMSNorm (Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"), for each row of n numbers:
//
//   r = √(Σ x² / n + ε)      x̂ = x / r      y = x̂ ∘ γ
//
//   dx = (g − x̂ · (Σ g ∘ x̂) / n) / r   with g = dy ∘ γ,      dγ = Σ over the rows of dy ∘ x̂
//
// In the code normed is x̂, scale is γ, and above and x_hat are one row of dy and of x̂.
//
// The grader compares every entry with differences. Which gradients are wrong, with which inputs are they right, and
// what do those inputs have in common?
//
//   scripts/grade.sh find_the_bug
#include "find_the_bug/find_the_bug.h"

#include <cmath>
#include <span>

#include "autograd/wanted.h"

using namespace bertrand;

Variable rms_norm(const Variable& x, const Variable& gamma, double epsilon) {
  const Dim rows = x.shape()[0], n = x.shape()[1];
  const Tensor y(x.shape(), DType::f64, x.value().backend());
  const Tensor normed(x.shape(), DType::f64, x.value().backend());  // x̂
  std::vector<double> r(static_cast<std::size_t>(rows));
  for (Dim i = 0; i < rows; ++i) {
    const auto in = x.value().rows(i, i + 1).span<double>();
    double squares = 0;
    for (const double v : in) squares += v * v;
    r[i] = std::sqrt(squares / n + epsilon);
    for (Dim j = 0; j < n; ++j) {
      normed.span<double>()[i * n + j] = in[j] / r[i];
      y.span<double>()[i * n + j] = in[j] / r[i] * gamma.value().span<double>()[j];
    }
  }
  const auto backward = [rows, n, r, normed, scale = gamma.value()](const Tensor& dy, Wanted&) {
    const Tensor dx(normed.shape(), DType::f64, normed.backend());
    const Tensor dgamma = ops::full({n}, 0, DType::f64, normed.backend());
    for (Dim i = 0; i < rows; ++i) {
      const auto x_hat = normed.rows(i, i + 1).span<double>(), above = dy.rows(i, i + 1).span<double>();
      double sum = 0;
      for (Dim j = 0; j < n; ++j) sum += above[j] * x_hat[j];
      for (Dim j = 0; j < n; ++j) {
        const double g = above[j] * scale.span<double>()[j];
        dx.span<double>()[i * n + j] = (g - x_hat[j] * sum / n) / r[i];
        dgamma.span<double>()[j] += above[j] * x_hat[j];
      }
    }
    return Grads{dx, dgamma};
  };
  return record("rms_norm", y, {x, gamma}, backward);
}
