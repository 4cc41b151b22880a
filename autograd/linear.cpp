// Matrix products. Gradients of weights are written straight into the parameters' own buffers.
#include "autograd/ops.h"
#include "autograd/wanted.h"

namespace bertrand {

Variable matmul(const Variable& a, const Variable& b) {
  Tensor y = ops::matmul(a.value(), b.value());
  return record("matmul", y, {a, b}, [a = a.value(), b = b.value()](const Tensor& dy, Wanted& want) {
    return Grads{
        want[0] ? ops::matmul(dy, b, {.transpose_b = true, .into = want.into(0)}) : Tensor{},  // dA = dY · Bᵀ
        want[1] ? ops::matmul(a, dy, {.transpose_a = true, .into = want.into(1)}) : Tensor{},  // dB = Aᵀ · dY
    };
  });
}

namespace {
void check_rows(const char* op, const Variable& x) {
  check(x.value().shape().rank() == 2, "{}: x must be [rows, in], got {}; reshape it", op, x.value().shape());
}

/// The gradients of y = x · Wᵀ + b.
Grads linear_backward(const Tensor& x, const Tensor& weight, const Tensor& dy, Wanted& want) {
  Tensor dx, dw, db;
  if (want[0]) dx = ops::matmul(dy, weight, {.into = want.into(0)});  // dx = dy · W
  if (want[2]) db = want.fresh_buffer(2);
  if (want[2] && !db) db = Tensor({dy.shape()[-1]}, dy.dtype(), dy.backend());
  if (want[1])
    dw = ops::matmul(dy, x,
                     {.transpose_a = true,
                      .into = want.into(1),
                      .row_sums = db});  // dW = dyᵀ · x and, on the way, db = Σ rows of dy
  else if (want[2]) ops::sum_to(dy, db.shape(), db);
  return {dx, dw, db};
}
}  // namespace

Variable linear(const Variable& x, const Variable& weight, const Variable& bias) {
  check_rows("linear", x);
  Tensor y = ops::linear(x.value(), weight.value(), bias.value());
  return record("linear", y, {x, weight, bias}, [x = x.value(), w = weight.value()](const Tensor& dy, Wanted& want) {
    return linear_backward(x, w, dy, want);
  });
}

Variable linear_gelu(const Variable& x, const Variable& weight, const Variable& bias, Gelu form) {
  check_rows("linear_gelu", x);
  const Unary f = form == Gelu::erf ? Unary::gelu_erf : Unary::gelu_tanh;
  const bool differentiable =
      !NoGrad::active() && (x.requires_grad() || weight.requires_grad() || bias.requires_grad());
  const ops::Activated h = ops::linear_activation(x.value(), weight.value(), bias.value(), f, differentiable);
  return record("linear_gelu", h.y, {x, weight, bias},
                [x = x.value(), w = weight.value(), pre = h.pre_activation, f](const Tensor& dy, Wanted& want) {
                  return linear_backward(x, w, ops::unary_backward(f, pre, dy), want);  // dpre = dy ∘ gelu′(pre)
                });
}

}  // namespace bertrand
