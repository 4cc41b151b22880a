#include "tensor/ops.h"

#include "tensor/profiler.h"

namespace bertrand::ops {
namespace {

/// Memory for what `op` computes; the name is told where there is none left.
Tensor result(const char* op, const Shape& shape, DType dtype, Backend& backend) {
  backend.current_op = op;
  return Tensor(shape, dtype, backend);
}
Tensor like(const char* op, const Tensor& x) { return result(op, x.shape(), x.dtype(), x.backend()); }
/// Statistics and losses of x, in the type that kernels compute in.
Tensor computed(const char* op, const Shape& shape, const Tensor& x) {
  return result(op, shape, compute_type(x.dtype()), x.backend());
}
double bytes(const Tensor& x) { return x ? static_cast<double>(x.bytes()) : 0.0; }

/// Work that is bounded by memory: every byte of these passes once.
template <class... Tensors>
Work moves(const Tensors&... tensors) {
  return {0, (bytes(tensors) + ...)};
}

void check_trailing(const char* op, const Tensor& a, const Tensor& b) {
  const int lead = a.shape().rank() - b.shape().rank();
  bool fits = a && b && lead >= 0 && a.dtype() == b.dtype();
  for (int i = 0; fits && i < b.shape().rank(); ++i) fits = a.shape()[lead + i] == b.shape()[i];
  check(fits, "{}: b must have a's shape or its trailing dimensions, a is {} {} and b is {} {}", op, name_of(a.dtype()),
        a.shape(), name_of(b.dtype()), b.shape());
}
const char* name_of(Binary op) {
  switch (op) {
    case Binary::add: return "add";
    case Binary::sub: return "sub";
    case Binary::mul: return "mul";
    case Binary::div: return "div";
  }
  __builtin_unreachable();
}
void check_same(const char* op, const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape() && a.dtype() == b.dtype(),
        "{}: expected equal shapes and types, a is {} {} and b is {} {}", op, name_of(a.dtype()), a.shape(),
        name_of(b.dtype()), b.shape());
}
void check_indices(const char* op, const Tensor& rows) {
  check(rows.dtype() == DType::i32, "{}: indices must be i32, got {}", op, name_of(rows.dtype()));
}
void check_dropout(const char* op, const Tensor& x, const Dropout& dropout) {
  if (!dropout) return;
  check(dropout.row_keys && dropout.row_keys.dtype() == DType::i64 && dropout.row_keys.elements() == x.shape().rows(),
        "{}: dropout needs one i64 key a row, x is {} and there are {} keys", op, x.shape(),
        dropout.row_keys ? dropout.row_keys.elements() : 0);
}

/// The tensor to write to: the one given, which must fit, or a new one.
Tensor destination(const char* op, const Into& into, const Shape& shape, const Tensor& like_this) {
  if (!into.out) return result(op, shape, like_this.dtype(), like_this.backend());
  like_this.backend().current_op = op;
  check(into.out.shape() == shape && into.out.dtype() == like_this.dtype(),
        "{}: the result is {} {} but goes into {} {}", op, name_of(like_this.dtype()), shape, name_of(into.out.dtype()),
        into.out.shape());
  return into.out;
}

}  // namespace

Tensor full(const Shape& shape, double value, DType dtype, Backend& backend) {
  Tensor out = result("full", shape, dtype, backend);
  backend.fill(out, value);
  return out;
}

template <class T>
std::vector<T> to_host(const Tensor& x) {
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
  check(x.elements() == 1, "item: expected one element, got {}", x.shape());
  return to_host<double>(x)[0];
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor out = result("cast", x.shape(), dtype, x.backend());
  copy_into(x, out);
  return out;
}
Tensor copy(const Tensor& x) {
  Tensor out = like("copy", x);
  copy_into(x, out);
  return out;
}
void copy_into(const Tensor& x, const Tensor& out) {
  check(x.elements() == out.elements(), "copy: {} into {}", x.shape(), out.shape());
  const Span span(x.backend(), "cast", moves(x, out));
  x.backend().cast(x, out);
  out.count_write();
}
Tensor unary(Unary op, const Tensor& x) {
  Tensor out = like("unary", x);
  const Span span(x.backend(), "unary", moves(x, out));
  x.backend().unary(op, x, out);
  return out;
}
Tensor unary_backward(Unary op, const Tensor& x, const Tensor& dy) {
  check_same("unary_backward", x, dy);
  Tensor dx = like("unary_backward", x);
  const Span span(x.backend(), "unary_backward", moves(x, dy, dx));
  x.backend().unary_backward(op, x, dy, dx);
  return dx;
}
Tensor binary(Binary op, const Tensor& a, const Tensor& b) {
  check_trailing(name_of(op), a, b);
  Tensor out = like("binary", a);
  const Span span(a.backend(), "binary", moves(a, b, out));
  a.backend().binary(op, a, b, out);
  return out;
}
void add_into(const Tensor& x, const Tensor& out) {
  check(x.shape() == out.shape() &&
            (x.dtype() == out.dtype() || (out.dtype() == DType::f32 && compute_type(x.dtype()) == DType::f32)),
        "add: {} {} into {} {}", name_of(x.dtype()), x.shape(), name_of(out.dtype()), out.shape());
  const Span span(x.backend(), "binary", moves(x, out, out));
  x.backend().binary(Binary::add, out, x, out);
  out.count_write();
}
Tensor scale(const Tensor& x, double factor) {
  Tensor out = like("scale", x);
  const Span span(x.backend(), "scale", moves(x, out));
  x.backend().scale(x, factor, out);
  return out;
}
Tensor expand(const Tensor& one, double factor, const Shape& shape, DType dtype) {
  check(one.elements() == 1, "expand: expected one element, got {}", one.shape());
  Tensor out = result("expand", shape, dtype, one.backend());
  const Span span(one.backend(), "expand", moves(out));
  one.backend().expand(one, factor, out);
  return out;
}

Tensor slice(const Tensor& x, int axis, Dim begin, Dim end) {
  axis = x.shape().resolve(axis);
  const Shape& shape = x.shape();
  check(0 <= begin && begin <= end && end <= shape[axis], "slice: [{}, {}) of axis {} of {}", begin, end, axis, shape);
  Tensor out = result("slice", shape.with(axis, end - begin), x.dtype(), x.backend());
  if (out.elements() == 0) return out;
  const Dim inner = shape.product(axis + 1, shape.rank()), outer = shape.product(0, axis);
  const Span span(x.backend(), "slice", moves(out, out));
  const Dim run = shape[axis] * inner, first = begin * inner;
  x.backend().copy_block(x.window(first, {outer * run - first}), run, out, (end - begin) * inner, outer,
                         (end - begin) * inner);
  return out;
}
Tensor slice_backward(const Tensor& dy, const Shape& shape, int axis, Dim begin) {
  axis = shape.resolve(axis);
  Tensor dx = full(shape, 0, dy.dtype(), dy.backend());
  if (dy.elements() == 0) return dx;
  const Dim inner = shape.product(axis + 1, shape.rank()), outer = shape.product(0, axis);
  const Dim run = shape[axis] * inner, width = dy.shape()[axis] * inner, first = begin * inner;
  const Span span(dy.backend(), "slice_backward", moves(dy, dx));
  dy.backend().copy_block(dy, width, dx.window(first, {outer * run - first}), run, outer, width);
  return dx;
}
Tensor dropout(const Tensor& x, const Dropout& dropout) {
  check_dropout("dropout", x, dropout);
  if (!dropout) return x;
  Tensor out = like("dropout", x);
  const Span span(x.backend(), "dropout", moves(x, out));
  x.backend().dropout(x, dropout, out);
  return out;
}

Tensor sum(const Tensor& x, double factor) {
  Tensor out = computed("sum", {1}, x);
  const Span span(x.backend(), "sum", moves(x));
  x.backend().sum(x, factor, out);
  return out;
}
Tensor sum_to(const Tensor& x, const Shape& trailing, const Tensor& out) {
  if (trailing.elements() == x.elements() && !out) return x.reshape(trailing);
  const Dim columns = trailing.elements();
  check(columns > 0 && x.elements() % columns == 0, "sum_to: {} to {}", x.shape(), trailing);
  Tensor y = destination("sum_to", {out}, trailing, x);
  const Span span(x.backend(), "sum_rows", moves(x, y));
  x.backend().sum_rows(x, y);
  return y;
}
Tensor norm(const Tensor& x) {
  Tensor out = result("norm", {1}, DType::f64, x.backend());
  const Span span(x.backend(), "norm", moves(x));
  x.backend().norm(x, out);
  return out;
}

namespace {
Work gemm_work(const Tensor& a, const Tensor& b, const Tensor& out, Dim depth) {
  return {2.0 * static_cast<double>(out.elements()) * static_cast<double>(depth), bytes(a) + bytes(b) + bytes(out)};
}
}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const auto marked = [](bool transposed) { return transposed ? "ᵀ" : ""; };
  check(a.shape().rank() == 2 && b.shape().rank() == 2 && a.dtype() == b.dtype(),
        "matmul: expected matrices of one type, a is {} {} and b is {} {}", name_of(a.dtype()), a.shape(),
        name_of(b.dtype()), b.shape());
  const Dim rows = a.shape()[options.transpose_a ? 1 : 0], depth = a.shape()[options.transpose_a ? 0 : 1];
  const Dim b_depth = b.shape()[options.transpose_b ? 1 : 0], columns = b.shape()[options.transpose_b ? 0 : 1];
  check(depth == b_depth, "matmul: inner dimensions differ, a is {}{} and b is {}{}", a.shape(),
        marked(options.transpose_a), b.shape(), marked(options.transpose_b));
  check(!options.row_sums ||
            (options.transpose_a && options.row_sums.shape() == Shape{rows} && options.row_sums.dtype() == a.dtype()),
        "matmul: the sums of {} rows of aᵀ go into {}", rows, options.row_sums ? options.row_sums.shape() : Shape{});
  Tensor out = destination("matmul", options.into, {rows, columns}, a);
  const Span span(a.backend(), "gemm", gemm_work(a, b, out, depth));
  a.backend().gemm(a, b, out,
                   {.transpose_a = options.transpose_a,
                    .transpose_b = options.transpose_b,
                    .accumulate = options.into.accumulate,
                    .row_sums = options.row_sums});
  return out;
}
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear_activation(x, weight, bias, Unary::identity, false).y;
}
Activated linear_activation(const Tensor& x, const Tensor& weight, const Tensor& bias, Unary activation,
                            bool keep_pre_activation) {
  check(weight.shape().rank() == 2 && x.shape().rank() >= 1 && x.shape()[-1] == weight.shape()[1] &&
            x.dtype() == weight.dtype(),
        "linear: x is {} {} but the weight is {} {} [out, in]", name_of(x.dtype()), x.shape(), name_of(weight.dtype()),
        weight.shape());
  check(!bias || (bias.shape() == Shape{weight.shape()[0]} && bias.dtype() == weight.dtype()),
        "linear: the weight is {} {} [out, in] but the bias is {} {}", name_of(weight.dtype()), weight.shape(),
        name_of(bias ? bias.dtype() : weight.dtype()), bias ? bias.shape() : Shape{});
  check(weight.shape()[1] > 0, "linear: the weight is {} [out, in]: expected at least one column", weight.shape());
  const Shape matrix{x.shape().rows(), weight.shape()[0]}, shape = x.shape().with(-1, weight.shape()[0]);
  Tensor y = result("linear", matrix, x.dtype(), x.backend());
  Tensor pre = keep_pre_activation ? result("linear", matrix, x.dtype(), x.backend()) : Tensor{};
  const Tensor rows = x.reshape({matrix[0], x.shape()[-1]});
  {
    const Span span(x.backend(), "gemm", gemm_work(rows, weight, y, weight.shape()[1]));
    x.backend().gemm(rows, weight, y,
                     {.transpose_b = true, .bias = bias, .activation = activation, .pre_activation = pre});
  }
  return {y.reshape(shape), pre ? pre.reshape(shape) : pre};
}
Tensor softmax(const Tensor& x) {
  Tensor y = like("softmax", x);
  const Span span(x.backend(), "softmax", moves(x, y));
  x.backend().softmax(x, y);
  return y;
}
Tensor softmax_backward(const Tensor& y, const Tensor& dy) {
  check_same("softmax_backward", y, dy);
  Tensor dx = like("softmax_backward", y);
  const Span span(y.backend(), "softmax_backward", moves(y, dy, dx));
  y.backend().softmax_backward(y, dy, dx);
  return dx;
}
Normalized layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options) {
  const Shape row{x.shape().columns()};
  const auto fits = [&](const Tensor& t) { return t.shape() == row && t.dtype() == x.dtype(); };
  check(fits(options.gamma) && fits(options.beta), "layer_norm: x is {} {} but gamma is {} {} and beta is {} {}",
        name_of(x.dtype()), x.shape(), name_of(options.gamma.dtype()), options.gamma.shape(),
        name_of(options.beta.dtype()), options.beta.shape());
  if (residual) check_same("layer_norm", x, residual);
  check_dropout("layer_norm", x, options.dropout);
  Normalized out{like("layer_norm", x), residual || options.dropout ? like("layer_norm", x) : x,
                 computed("layer_norm", {x.shape().rows(), 2}, x)};
  const Span span(x.backend(), "layer_norm", moves(x, residual, out.sum, out.y));
  x.backend().layer_norm(x, residual, options, out.sum, out.y, out.statistics);
  return out;
}
NormGradients layer_norm_backward(const Normalized& saved, const LayerNorm& options, const Tensor& dy,
                                  const Tensor& dgamma, const Tensor& dbeta) {
  check_same("layer_norm_backward", saved.sum, dy);
  Tensor dsum = like("layer_norm_backward", dy);
  NormGradients out{options.dropout ? like("layer_norm_backward", dy) : Tensor{}, dsum,
                    destination("layer_norm_backward", {dgamma}, options.gamma.shape(), options.gamma),
                    destination("layer_norm_backward", {dbeta}, options.beta.shape(), options.beta)};
  const Span span(dy.backend(), "layer_norm_backward", moves(saved.sum, dy, dsum, out.dx));
  dy.backend().layer_norm_backward(saved.sum, saved.statistics, options, dy, dsum, out.dx, out.dgamma, out.dbeta);
  if (!out.dx) out.dx = dsum;
  return out;
}
Tensor gather(const Tensor& table, const Tensor& rows) {
  check_indices("gather", rows);
  check(table.shape().rank() >= 1 && rows.shape().rank() == 1, "gather: table is {} and rows are {}", table.shape(),
        rows.shape());
  Tensor out = result("gather", table.shape().with(0, rows.elements()), table.dtype(), table.backend());
  const Span span(table.backend(), "gather", moves(out, out));
  table.backend().gather(table, rows, out);
  return out;
}
Tensor scatter_add(const Tensor& dy, const Tensor& rows, const Shape& table_shape, const Into& into) {
  check_indices("scatter_add", rows);
  check(dy.shape() == table_shape.with(0, rows.elements()), "scatter_add: dy is {}, {} rows of {}", dy.shape(),
        rows.elements(), table_shape);
  Tensor out = destination("scatter_add", into, table_shape, dy);
  const Span span(dy.backend(), "scatter_add", moves(dy, dy, dy));
  dy.backend().scatter_add(dy, rows, out, into.accumulate);
  return out;
}

namespace {
void check_attention(const Tensor& qkv, const Attention& options) {
  check(qkv.shape().rank() == 2 && options.heads > 0 && qkv.shape()[1] % (3 * options.heads) == 0,
        "attention: qkv must be [tokens, 3 · heads · head_dim], got {} for {} heads", qkv.shape(), options.heads);
  check_indices("attention: offsets", options.offsets);
  check(options.offsets.elements() >= 1 && options.longest >= 0 && options.longest <= qkv.shape()[0],
        "attention: {} offsets, longest {} of {} tokens", options.offsets.elements(), options.longest, qkv.shape()[0]);
  check_dropout("attention", qkv, options.dropout);
}
/// Each of `products` products touches tokens × tokens-of-the-sequence × hidden; sequences are taken to be of equal
/// length.
Work attention_work(const Tensor& qkv, const Attention& options, int products) {
  const double tokens = static_cast<double>(qkv.shape()[0]), hidden = static_cast<double>(qkv.shape()[1]) / 3;
  const double sequences = static_cast<double>(std::max<Dim>(1, options.offsets.elements() - 1));
  return {2.0 * products * tokens * tokens / sequences * hidden, bytes(qkv) * 4 / 3};
}
}  // namespace

Attended attention(const Tensor& qkv, const Attention& options) {
  check_attention(qkv, options);
  const Dim tokens = qkv.shape()[0];
  Attended out{result("attention", {tokens, qkv.shape()[1] / 3}, qkv.dtype(), qkv.backend()),
               computed("attention", {tokens, options.heads}, qkv)};
  const Span span(qkv.backend(), "attention", attention_work(qkv, options, 2));
  qkv.backend().attention(qkv, options, out.context, out.log_sum);
  return out;
}
Tensor attention_backward(const Tensor& qkv, const Attention& options, const Attended& saved, const Tensor& dcontext) {
  check_attention(qkv, options);
  check_same("attention_backward", saved.context, dcontext);
  Tensor dqkv = like("attention_backward", qkv);
  const Span span(qkv.backend(), "attention_backward", attention_work(qkv, options, 5));
  qkv.backend().attention_backward(qkv, options, saved.context, saved.log_sum, dcontext, dqkv);
  return dqkv;
}

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, double denominator) {
  check(labels.dtype() == DType::i32 && labels.elements() == logits.shape().rows(),
        "cross_entropy: logits are {} and labels are {} {}", logits.shape(), name_of(labels.dtype()), labels.shape());
  CrossEntropy out{computed("cross_entropy", {1}, logits), computed("cross_entropy", {logits.shape().rows()}, logits)};
  const Span span(logits.backend(), "cross_entropy", moves(logits));
  logits.backend().cross_entropy(logits, labels, denominator, out.log_sum, out.loss);
  return out;
}
Tensor cross_entropy_backward(Tensor logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                              const Tensor& dy) {
  Tensor dlogits = logits.unique() ? logits : like("cross_entropy_backward", logits);
  const Span span(logits.backend(), "cross_entropy_backward", moves(logits, dlogits));
  logits.backend().cross_entropy_backward(logits, labels, denominator, log_sum, dy, dlogits);
  return dlogits;
}
Tensor point_loss(PointLoss loss, const Tensor& x, const Tensor& target, double denominator) {
  check_same("point_loss", x, target);
  Tensor out = computed("point_loss", {1}, x);
  const Span span(x.backend(), "point_loss", moves(x, target));
  x.backend().point_loss(loss, x, target, denominator, out);
  return out;
}
Tensor point_loss_backward(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                           const Tensor& dy) {
  Tensor dx = like("point_loss_backward", x);
  const Span span(x.backend(), "point_loss_backward", moves(x, target, dx));
  x.backend().point_loss_backward(loss, x, target, denominator, dy, dx);
  return dx;
}
Tensor argmax(const Tensor& x) {
  Tensor out({x.shape().rows()}, DType::i32, x.backend());
  const Span span(x.backend(), "argmax", moves(x));
  x.backend().argmax(x, out);
  return out;
}

}  // namespace bertrand::ops
