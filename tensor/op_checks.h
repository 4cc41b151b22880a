// What every op does before its kernel: checks of its inputs, memory for its result, and the work for rates.
#pragma once
#include <algorithm>

#include "tensor/ops.h"
#include "tensor/run.h"

namespace bertrand::ops {

inline void check_given(const char* op, const char* name, const Tensor& x) {
  if (!x) Tensor::fail_without_value(fmt::format("{}: {}", op, name));
}

/// Memory for what `op` computes, on the device of its input. If there is none left, or the input is empty, the error
/// names `op`.
inline Tensor result(const char* op, const Shape& shape, DType dtype, const Tensor& input) {
  check_given(op, "its input", input);
  input.backend().current_op = op;
  return Tensor(shape, dtype, input.backend());
}
inline Tensor like(const char* op, const Tensor& x) { return result(op, x.shape(), x.dtype(), x); }
/// Statistics and losses of x, in the type that kernels compute in.
inline Tensor computed(const char* op, const Shape& shape, const Tensor& x) {
  return result(op, shape, compute_type(x.dtype()), x);
}
/// Whether `given`, called `name`, is of the type that computed() gives: what the op before it made of x.
inline void check_computed(const char* op, const char* name, const Tensor& given, const Tensor& x) {
  check(given.dtype() == compute_type(x.dtype()), "{}: expected {} of {} for x of {}, got {}", op, name,
        name_of(compute_type(x.dtype())), name_of(x.dtype()), name_of(given.dtype()));
}
inline double bytes(const Tensor& x) { return static_cast<double>(x.bytes()); }

/// Work that is bounded by memory: every byte of these passes once.
template <class... Tensors>
Work moves(const Tensors&... tensors) {
  return {0, (bytes(tensors) + ...)};
}

/// Whether the last axes of `shape` are `trailing`.
inline bool ends_with(const Shape& shape, const Shape& trailing) {
  const auto all = shape.dims(), last = trailing.dims();
  return all.size() >= last.size() && std::ranges::equal(all.last(last.size()), last);
}
inline void check_trailing(const char* op, const Tensor& a, const Tensor& b) {
  check_given(op, "a", a);
  check_given(op, "b", b);
  check(ends_with(a.shape(), b.shape()) && a.dtype() == b.dtype(),
        "{}: b must have a's shape or its trailing dimensions, a is {} {} and b is {} {}", op, name_of(a.dtype()),
        a.shape(), name_of(b.dtype()), b.shape());
}
inline void check_same(const char* op, const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape() && a.dtype() == b.dtype(),
        "{}: expected equal shapes and types, a is {} {} and b is {} {}", op, name_of(a.dtype()), a.shape(),
        name_of(b.dtype()), b.shape());
}
inline void check_indices(const char* op, const Tensor& rows) {
  check(rows.dtype() == DType::i32, "{}: expected numbers of i32, got {}; hint: ops::cast(x, DType::i32)", op,
        name_of(rows.dtype()));
}
inline void check_dropout(const char* op, const Tensor& x, const Dropout& dropout) {
  if (!dropout) return;
  check(dropout.threshold < 65536, "{}: expected a dropout's threshold below 65536, got {}", op, dropout.threshold);
  check(dropout.row_keys.dtype() == DType::i64 && dropout.row_keys.elements() == x.shape().rows(),
        "{}: expected one key of i64 for each row of x {} to drop elements, got {} keys", op, x.shape(),
        dropout.row_keys.elements());
}

/// The tensor to write to: the one given, which must fit, or a new one. A write to the one given is counted.
inline Tensor destination(const char* op, const Into& into, const Shape& shape, const Tensor& like_this) {
  check(into.out || !into.accumulate, "{}: expected a tensor to add to, got none", op);
  if (!into.out) return result(op, shape, like_this.dtype(), like_this);
  like_this.backend().current_op = op;
  check(into.out.shape() == shape && into.out.dtype() == like_this.dtype(),
        "{}: the result is {} {} but goes into {} {}: shapes and types must be equal", op, name_of(like_this.dtype()),
        shape, name_of(into.out.dtype()), into.out.shape());
  into.out.count_write();
  return into.out;
}

}  // namespace bertrand::ops
