// One answer: log σ(x) = min(x, 0) − log(1 + e^−|x|), where the exponent is never positive.
#include "log_sigmoid/log_sigmoid.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "autograd/wanted.h"

using namespace bertrand;

Variable log_sigmoid(const Variable& x) {
  const Tensor y(x.shape(), DType::f64, x.value().backend());
  const std::span<const double> in = x.value().span<double>();
  const std::span<double> out = y.span<double>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    out[i] = std::min(in[i], 0.0) - std::log1p(std::exp(-std::abs(in[i])));
  }
  return record("log_sigmoid", y, {x}, [x = x.value()](const Tensor& dy, Wanted&) {
    const Tensor dx(x.shape(), DType::f64, x.backend());
    for (std::size_t i = 0; i < dx.span<double>().size(); ++i)
      dx.span<double>()[i] = dy.span<double>()[i] / (1 + std::exp(x.span<double>()[i]));  // 1 − σ(x) = 1 / (1 + eˣ)
    return Grads{dx};
  });
}
