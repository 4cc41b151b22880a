// Checks, memory and the start of a kernel for each op.
#include "tensor/ops.h"

#include "tensor/op_checks.h"

namespace bertrand::ops {

Tensor full(const Shape& shape, double value, DType dtype, Backend& backend) {
  backend.current_op = "full";
  Tensor out(shape, dtype, backend);
  fill(out, value);
  return out;
}
void fill(const Tensor& out, double value) {
  check_given("fill", "out", out);
  run(out.backend(), [&](Kernels& k) { k.fill(out, value); });
  out.count_write();
}

template <class T>
std::vector<T> to_host(const Tensor& x) {
  check_given("to_host", "x", x);
  const Tensor converted = cast(x, dtype_of<T>());
  std::vector<T> host(static_cast<std::size_t>(x.elements()));
  x.backend().download(converted, host.data());
  return host;
}
template std::vector<float> to_host(const Tensor&);
template std::vector<double> to_host(const Tensor&);
template std::vector<std::int32_t> to_host(const Tensor&);
template std::vector<std::int64_t> to_host(const Tensor&);
template std::vector<std::uint8_t> to_host(const Tensor&);

double item(const Tensor& x) {
  check_given("item", "x", x);
  check(x.elements() == 1, "item: expected a tensor of one element, got {}; hint: sum or slice it first", x.shape());
  return to_host<double>(x)[0];
}

Tensor cast(const Tensor& x, DType dtype) {
  check_given("cast", "x", x);
  if (x.dtype() == dtype) return x;
  Tensor out = result("cast", x.shape(), dtype, x);
  copy_into(x, out);
  return out;
}
Tensor copy(const Tensor& x) {
  Tensor out = like("copy", x);
  copy_into(x, out);
  return out;
}
void copy_into(const Tensor& x, const Tensor& out) {
  check_given("copy", "out", out);
  check(x.elements() == out.elements(), "copy: expected as many elements in both, got x {} with {} and out {} with {}",
        x.shape(), x.elements(), out.shape(), out.elements());
  run(x.backend(), "cast", moves(x, out), [&](Kernels& k) { k.cast(x, out); });
  out.count_write();
}
Tensor unary(Unary op, const Tensor& x) {
  Tensor out = like(name_of(op), x);
  run(x.backend(), "unary", moves(x, out), [&](Kernels& k) { k.unary(op, x, out); });
  return out;
}
Tensor unary_backward(Unary op, const Tensor& x, const Tensor& dy, const Tensor& sum_of_rows) {
  check_same("unary_backward", x, dy);
  check(!sum_of_rows ||
            (x.shape().rank() >= 1 && sum_of_rows.shape() == Shape{x.shape()[-1]} && sum_of_rows.dtype() == x.dtype()),
        "unary_backward: expected a sum of rows of x's type and last axis, x is {} {}, got {} {}", name_of(x.dtype()),
        x.shape(), name_of(sum_of_rows.dtype()), sum_of_rows.shape());
  Tensor dx = like("unary_backward", x);
  if (sum_of_rows) sum_of_rows.count_write();
  run(x.backend(), "unary_backward", moves(x, dy, dx),
      [&](Kernels& k) { k.unary_backward(op, x, dy, dx, sum_of_rows); });
  return dx;
}
Tensor binary(Binary op, const Tensor& a, const Tensor& b) {
  check_trailing(name_of(op), a, b);
  Tensor out = like(name_of(op), a);
  run(a.backend(), "binary", moves(a, b, out), [&](Kernels& k) { k.binary(op, a, b, out); });
  return out;
}
void add_into(const Tensor& x, const Tensor& out) {
  check_given("add_into", "out", out);
  check(x.shape() == out.shape() &&
            (x.dtype() == out.dtype() || (out.dtype() == DType::f32 && compute_type(x.dtype()) == DType::f32)),
        "add_into: expected x of out's shape and type (or of a half type if out is f32), x is {} {} and out is {} {}",
        name_of(x.dtype()), x.shape(), name_of(out.dtype()), out.shape());
  run(x.backend(), "binary", moves(x, out, out), [&](Kernels& k) { k.binary(Binary::add, out, x, out); });
  out.count_write();
}
Tensor scale(const Tensor& x, double factor) {
  Tensor out = like("scale", x);
  run(x.backend(), "scale", moves(x, out), [&](Kernels& k) { k.scale(x, factor, out); });
  return out;
}
Tensor expand(const Tensor& one, double factor, const Shape& shape, DType dtype) {
  Tensor out = result("expand", shape, dtype, one);
  check(one.elements() == 1, "expand: expected one element, got {}", one.shape());
  run(one.backend(), "expand", moves(out), [&](Kernels& k) { k.expand(one, factor, out); });
  return out;
}

Tensor slice(const Tensor& x, int axis, Dim begin, Dim end) {
  check_given("slice", "x", x);
  axis = x.shape().resolve(axis);
  const Shape& shape = x.shape();
  check(0 <= begin && begin <= end && end <= shape[axis],
        "slice: expected 0 <= begin <= end <= {}, the extent of axis {} of {}, got [{}, {})", shape[axis], axis, shape,
        begin, end);
  Tensor out = result("slice", shape.with(axis, end - begin), x.dtype(), x);
  if (out.elements() == 0) return out;
  const Dim inner = shape.product(axis + 1, shape.rank()), outer = shape.product(0, axis);
  const Dim stride = shape[axis] * inner, first = begin * inner;
  run(x.backend(), "slice", moves(out, out), [&](Kernels& k) {
    k.copy_block(x.window(first, {outer * stride - first}), stride, out, (end - begin) * inner, outer,
                 (end - begin) * inner);
  });
  return out;
}
Tensor slice_backward(const Tensor& dy, const Shape& shape, int axis, Dim begin) {
  axis = shape.resolve(axis);
  Tensor dx = result("slice_backward", shape, dy.dtype(), dy);
  const Dim end = begin + dy.shape()[axis];
  check(begin >= 0 && end <= shape[axis] && dy.shape() == shape.with(axis, dy.shape()[axis]),
        "slice_backward: expected the gradient of a slice of {} along axis {}, got {} from {} on", shape, axis,
        dy.shape(), begin);
  fill(dx, 0);
  if (dy.elements() == 0) return dx;
  const Dim inner = shape.product(axis + 1, shape.rank()), outer = shape.product(0, axis);
  const Dim stride = shape[axis] * inner, width = dy.shape()[axis] * inner, first = begin * inner;
  run(dy.backend(), "slice_backward", moves(dy, dx),
      [&](Kernels& k) { k.copy_block(dy, width, dx.window(first, {outer * stride - first}), stride, outer, width); });
  return dx;
}
Tensor dropout(const Tensor& x, const Dropout& dropout) {
  check_dropout("dropout", x, dropout);
  if (!dropout) return x;
  Tensor out = like("dropout", x);
  run(x.backend(), "dropout", moves(x, out), [&](Kernels& k) { k.dropout(x, dropout, out); });
  return out;
}

Tensor sum(const Tensor& x, double factor) {
  Tensor out = computed("sum", {1}, x);
  run(x.backend(), "sum", moves(x), [&](Kernels& k) { k.sum(x, factor, out); });
  return out;
}
Tensor sum_to(const Tensor& x, const Shape& trailing, const Tensor& out) {
  check_given("sum_to", "x", x);
  const bool fits = ends_with(x.shape(), trailing);
  if (fits && trailing.elements() == x.elements() && !out) return x.reshape(trailing);
  check(fits && trailing.elements() > 0,
        "sum_to: expected the last axes of x {}, and at least one element, as the shape of the sum, got {}", x.shape(),
        trailing);
  Tensor y = destination("sum_to", {out}, trailing, x);
  run(x.backend(), "sum_rows", moves(x, y), [&](Kernels& k) { k.sum_rows(x, y); });
  return y;
}
Dim first_non_finite(const Tensor& x) {
  check_given("first_non_finite", "x", x);
  Dim at = -1;
  run(x.backend(), [&](Kernels& k) { at = k.first_non_finite(x); });
  return at;
}
Tensor norm(const Tensor& x) {
  Tensor out = result("norm", {1}, DType::f64, x);
  run(x.backend(), "norm", moves(x), [&](Kernels& k) { k.norm(x, out); });
  return out;
}

}  // namespace bertrand::ops
