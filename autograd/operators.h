// a + b, 2 * x, -x: the ops of autograd/ops.h as C++ operators, element by element. matmul() is the product of
// matrices.
#pragma once
#include "autograd/ops.h"

namespace bertrand {

inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }
inline Variable operator-(const Variable& x) { return neg(x); }

/// `c` repeated as a row of x: what add() takes.
inline Variable scalar(double c, const Variable& x) {
  const Shape row = x.shape().rank() > 0 ? Shape{x.shape()[-1]} : Shape{};
  return Variable(ops::full(row, c, x.value().dtype(), x.value().backend()));
}

inline Variable operator+(const Variable& x, double c) { return add(x, scalar(c, x)); }
inline Variable operator+(double c, const Variable& x) { return x + c; }
inline Variable operator-(const Variable& x, double c) { return x + -c; }
inline Variable operator-(double c, const Variable& x) { return neg(x) + c; }
inline Variable operator*(const Variable& x, double c) { return scale(x, c); }
inline Variable operator*(double c, const Variable& x) { return scale(x, c); }
/// x · (1 / c), which may differ from x / c in the last bit.
inline Variable operator/(const Variable& x, double c) { return scale(x, 1 / c); }
inline Variable operator/(double c, const Variable& x) {
  return div(Variable(ops::full(x.shape(), c, x.value().dtype(), x.value().backend())), x);
}

}  // namespace bertrand
