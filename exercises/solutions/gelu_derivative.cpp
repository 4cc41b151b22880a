// One answer.
#include "gelu_derivative/gelu_derivative.h"

#include <cmath>
#include <numbers>
#include <span>

#include "autograd/wanted.h"

using namespace bertrand;

Variable my_gelu(const Variable& x) {
  const double c = std::sqrt(2 / std::numbers::pi), a = 0.044715;
  const Tensor y(x.shape(), DType::f64, x.value().backend());
  const std::span<const double> in = x.value().span<double>();
  const std::span<double> out = y.span<double>();
  for (std::size_t i = 0; i < in.size(); ++i)
    out[i] = 0.5 * in[i] * (1 + std::tanh(c * (in[i] + a * in[i] * in[i] * in[i])));
  return record("gelu", y, {x}, [=, x = x.value()](const Tensor& dy, Wanted&) {
    const Tensor dx(x.shape(), DType::f64, x.backend());
    const std::span<const double> at = x.span<double>(), above = dy.span<double>();
    const std::span<double> below = dx.span<double>();
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double t = std::tanh(c * (at[i] + a * at[i] * at[i] * at[i]));
      const double inner = c * (1 + 3 * a * at[i] * at[i]);
      below[i] = above[i] * (0.5 * (1 + t) + 0.5 * at[i] * (1 - t * t) * inner);
    }
    return Grads{dx};
  });
}
