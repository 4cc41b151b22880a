// Ops that rearrange or sum.
#include "autograd/ops.h"
#include "autograd/wanted.h"

namespace bertrand {

Variable reshape(const Variable& x, const Shape& shape) {
  return record("reshape", x.value().reshape(shape), {x},
                [shape = x.shape()](const Tensor& dy, Wanted&) { return Grads{dy.reshape(shape)}; });
}

Variable slice(const Variable& x, int axis, Dim begin, Dim end) {
  return record("slice", ops::slice(x.value(), axis, begin, end), {x},
                [shape = x.shape(), axis, begin](const Tensor& dy, Wanted&) {
                  return Grads{ops::slice_backward(dy, shape, axis, begin)};  // dx = dy inside the slice, 0 outside
                });
}

namespace {
/// y = factor · Σ x, dx = factor · dy everywhere
Variable scaled_sum(const char* name, const Variable& x, double factor) {
  return record(name, ops::sum(x.value(), factor), {x},
                [shape = x.shape(), dtype = x.value().dtype(), factor](const Tensor& dy, Wanted&) {
                  return Grads{ops::expand(dy, factor, shape, dtype)};
                });
}
}  // namespace

Variable sum(const Variable& x) { return scaled_sum("sum", x, 1); }
Variable mean(const Variable& x) {
  check(x.value().elements() > 0, "mean: expected at least one element, got x of {}", x.shape());
  return scaled_sum("mean", x, 1 / static_cast<double>(x.value().elements()));
}

}  // namespace bertrand
