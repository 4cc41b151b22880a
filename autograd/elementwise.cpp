// Ops that look at one element at a time: the page to begin with. Each computes, then says how its gradient flows.
#include "autograd/ops.h"
#include "autograd/wanted.h"

namespace bertrand {

Variable add(const Variable& a, const Variable& b) {
  Tensor y = ops::binary(Binary::add, a.value(), b.value());
  return record("add", y, {a, b}, [row = b.shape()](const Tensor& dy, Wanted& want) {
    return Grads{
        dy,                                         // da = dy
        want[1] ? ops::sum_to(dy, row) : Tensor{},  // db = dy, summed if b was repeated
    };
  });
}

Variable sub(const Variable& a, const Variable& b) {
  Tensor y = ops::binary(Binary::sub, a.value(), b.value());
  return record("sub", y, {a, b}, [row = b.shape()](const Tensor& dy, Wanted& want) {
    return Grads{
        dy,                                                                 // da = dy
        want[1] ? ops::unary(Unary::neg, ops::sum_to(dy, row)) : Tensor{},  // db = −dy, summed too
    };
  });
}

Variable mul(const Variable& a, const Variable& b) {
  Tensor y = ops::binary(Binary::mul, a.value(), b.value());
  return record("mul", y, {a, b}, [a = a.value(), b = b.value()](const Tensor& dy, Wanted& want) {
    return Grads{
        want[0] ? ops::binary(Binary::mul, dy, b) : Tensor{},  // da = dy ∘ b
        want[1] ? ops::sum_to(ops::binary(Binary::mul, dy, a), b.shape())
                : Tensor{},  // db = dy ∘ a, summed if b was repeated
    };
  });
}

Variable div(const Variable& a, const Variable& b) {
  Tensor y = ops::binary(Binary::div, a.value(), b.value());
  return record("div", y, {a, b}, [y, b = b.value()](const Tensor& dy, Wanted& want) {
    const Tensor da = ops::binary(Binary::div, dy, b);  // da = dy / b
    if (!want[1]) return Grads{da, {}};
    const Tensor db = ops::unary(Unary::neg, ops::binary(Binary::mul, da, y));  // db = −dy / b ∘ a / b
    return Grads{da, ops::sum_to(db, b.shape())};
  });
}

Variable scale(const Variable& x, double factor) {
  return record("scale", ops::scale(x.value(), factor), {x}, [factor](const Tensor& dy, Wanted&) {
    return Grads{ops::scale(dy, factor)};  // dx = factor · dy
  });
}

namespace {
/// y = f(x), dx = dy ∘ f′(x). For a new f add its name to Unary in tensor/kernels.h; then the compiler asks for
/// name_of() there, and for apply() and slope(), which are f and f′, in tensor/cpu/math.h and
/// tensor/cuda/elementwise.cu.
Variable unary(Unary f, const Variable& x) {
  return record(name_of(f), ops::unary(f, x.value()), {x},
                [f, x = x.value()](const Tensor& dy, Wanted&) { return Grads{ops::unary_backward(f, x, dy)}; });
}
}  // namespace

Variable neg(const Variable& x) { return unary(Unary::neg, x); }
Variable exp(const Variable& x) { return unary(Unary::exp, x); }
Variable log(const Variable& x) { return unary(Unary::log, x); }
Variable sqrt(const Variable& x) { return unary(Unary::sqrt, x); }
Variable tanh(const Variable& x) { return unary(Unary::tanh, x); }
Variable relu(const Variable& x) { return unary(Unary::relu, x); }
Variable gelu(const Variable& x) { return unary(Unary::gelu, x); }
Variable gelu_tanh(const Variable& x) { return unary(Unary::gelu_tanh, x); }

Variable cast(const Variable& x, DType dtype) {
  return record("cast", ops::cast(x.value(), dtype), {x}, [from = x.value().dtype()](const Tensor& dy, Wanted&) {
    return Grads{ops::cast(dy, from)};  // dx = dy, in x's type
  });
}

Variable dropout(const Variable& x, const Dropout& dropout) {
  if (!dropout) return x;
  return record("dropout", ops::dropout(x.value(), dropout), {x}, [dropout](const Tensor& dy, Wanted&) {
    return Grads{ops::dropout(dy, dropout)};  // dx = dy ∘ mask / keep: the same mask, drawn again
  });
}

}  // namespace bertrand
