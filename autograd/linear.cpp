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
/// The gradients of y = activation(pre), pre = x · Wᵀ + b; `pre` is empty if the activation is the identity.
Grads linear_backward(const Tensor& x, const Tensor& weight, const Tensor& pre, Activation activation, Tensor dy,
                      Wanted& want) {
  Tensor dx, dw, db = want.fresh_buffer(2);
  if (want[2] && !db) db = Tensor({dy.shape()[-1]}, dy.dtype(), dy.backend());
  if (pre) dy = ops::unary_backward(activation, pre, dy, db);  // dpre = dy ∘ activation′(pre) and db = Σ rows of dpre
  else if (db) ops::sum_to(dy, db.shape(), db);
  if (want[0]) dx = ops::matmul(dy, weight, {.into = want.into(0)});                  // dx = dpre · W
  if (want[1]) dw = ops::matmul(dy, x, {.transpose_a = true, .into = want.into(1)});  // dW = dpreᵀ · x
  return {dx, dw, db};
}
}  // namespace

Variable linear(const Variable& x, const Variable& weight, const Variable& bias, Activation activation) {
  check(x.value().shape().rank() == 2, "linear: expected x of [rows, in], got {}; hint: reshape() it",
        x.value().shape());
  const bool differentiable =
      !NoGrad::active() && (x.requires_grad() || weight.requires_grad() || bias.requires_grad());
  const bool activated = activation != Activation::identity;
  const ops::Activated h =
      ops::linear_activation(x.value(), weight.value(), bias.value(), activation, activated && differentiable);
  return record("linear", h.y, {x, weight, bias},
                [x = x.value(), w = weight.value(), pre = h.pre_activation, activation](
                    const Tensor& dy, Wanted& want) { return linear_backward(x, w, pre, activation, dy, want); });
}

}  // namespace bertrand
