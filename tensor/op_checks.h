// What every op does before its kernel: checks of its inputs, memory for its result, and the work for rates.
#pragma once
#include "tensor/ops.h"
#include "tensor/run.h"

namespace bertrand::ops {

/// Memory for what `op` computes. If there is none left, the error names `op`.
inline Tensor result(const char* op, const Shape& shape, DType dtype, Backend& backend) {
  backend.current_op = op;
  return Tensor(shape, dtype, backend);
}
inline Tensor like(const char* op, const Tensor& x) { return result(op, x.shape(), x.dtype(), x.backend()); }
/// Statistics and losses of x, in the type that kernels compute in.
inline Tensor computed(const char* op, const Shape& shape, const Tensor& x) {
  return result(op, shape, compute_type(x.dtype()), x.backend());
}
inline double bytes(const Tensor& x) { return x ? static_cast<double>(x.bytes()) : 0.0; }

/// Work that is bounded by memory: every byte of these passes once.
template <class... Tensors>
Work moves(const Tensors&... tensors) {
  return {0, (bytes(tensors) + ...)};
}

/// An op's inputs have values. An empty Tensor comes from a gradient that nothing has reached, or from a layer whose
/// parameters have no memory yet.
inline void check_given(const char* op, const char* name, const Tensor& x) {
  check(static_cast<bool>(x),
        "{}: {} has no value; hint: a layer has parameters after a ParameterSet of it was made, and a Variable has a "
        "gradient after backward reached it",
        op, name);
}

inline void check_trailing(const char* op, const Tensor& a, const Tensor& b) {
  check_given(op, "a", a);
  check_given(op, "b", b);
  const int lead = a.shape().rank() - b.shape().rank();
  bool fits = lead >= 0 && a.dtype() == b.dtype();
  for (int i = 0; fits && i < b.shape().rank(); ++i) fits = a.shape()[lead + i] == b.shape()[i];
  check(fits, "{}: b must have a's shape or its trailing dimensions, a is {} {} and b is {} {}", op, name_of(a.dtype()),
        a.shape(), name_of(b.dtype()), b.shape());
}
inline const char* name_of(Binary op) {
  switch (op) {
    case Binary::add: return "add";
    case Binary::sub: return "sub";
    case Binary::mul: return "mul";
    case Binary::div: return "div";
  }
  __builtin_unreachable();
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
  check(dropout.row_keys && dropout.row_keys.dtype() == DType::i64 && dropout.row_keys.elements() == x.shape().rows(),
        "{}: expected one key of i64 for each row of x {} to drop elements, got {} keys", op, x.shape(),
        dropout.row_keys ? dropout.row_keys.elements() : 0);
}

/// The tensor to write to: the one given, which must fit, or a new one.
inline Tensor destination(const char* op, const Into& into, const Shape& shape, const Tensor& like_this) {
  if (!into.out) return result(op, shape, like_this.dtype(), like_this.backend());
  like_this.backend().current_op = op;
  check(into.out.shape() == shape && into.out.dtype() == like_this.dtype(),
        "{}: the result is {} {} but goes into {} {}", op, name_of(like_this.dtype()), shape, name_of(into.out.dtype()),
        into.out.shape());
  return into.out;
}

}  // namespace bertrand::ops
