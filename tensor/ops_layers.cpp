// Ops that layers and losses are made of: products, softmax, normalisation, rows, attention, losses.
#include "tensor/op_checks.h"
#include "tensor/ops.h"

namespace bertrand::ops {

namespace {
void gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) {
  const double depth = static_cast<double>(a.shape()[options.transpose_a ? 0 : 1]);
  const Work work{2.0 * static_cast<double>(out.elements()) * depth, bytes(a) + bytes(b) + bytes(out)};
  a.backend().plan_scratch([&](const Kernels& k) { return k.gemm_workspace(a, out, options); });
  run(a.backend(), "gemm", work, [&](Kernels& k) { k.gemm(a, b, out, options); });
}
}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const auto marked = [](bool transposed) { return transposed ? "ᵀ" : ""; };
  check_given("matmul", "a", a);
  check_given("matmul", "b", b);
  check(a.shape().rank() == 2 && b.shape().rank() == 2 && a.dtype() == b.dtype(),
        "matmul: expected matrices of one type, a is {} {} and b is {} {}", name_of(a.dtype()), a.shape(),
        name_of(b.dtype()), b.shape());
  const Dim rows = a.shape()[options.transpose_a ? 1 : 0], depth = a.shape()[options.transpose_a ? 0 : 1];
  const Dim b_depth = b.shape()[options.transpose_b ? 1 : 0], columns = b.shape()[options.transpose_b ? 0 : 1];
  check(depth == b_depth,
        "matmul: inner dimensions differ, a is {}{} and b is {}{}: the last axis of the first must equal the first "
        "axis of "
        "the second",
        a.shape(), marked(options.transpose_a), b.shape(), marked(options.transpose_b));
  Tensor out = destination("matmul", options.into, {rows, columns}, a);
  gemm(a, b, out,
       {.transpose_a = options.transpose_a, .transpose_b = options.transpose_b, .accumulate = options.into.accumulate});
  return out;
}
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear_activation(x, weight, bias, Unary::identity, false).y;
}
Activated linear_activation(const Tensor& x, const Tensor& weight, const Tensor& bias, Unary activation,
                            bool keep_pre_activation) {
  check_given("linear", "x", x);
  check_given("linear", "the weight", weight);
  check(weight.shape().rank() == 2 && x.shape().rank() >= 1 && x.shape()[-1] == weight.shape()[1] &&
            x.dtype() == weight.dtype(),
        "linear: x is {} {} but the weight is {} {} [out, in]: the last axes and the types must be equal",
        name_of(x.dtype()), x.shape(), name_of(weight.dtype()), weight.shape());
  check(!bias || (bias.shape() == Shape{weight.shape()[0]} && bias.dtype() == weight.dtype()),
        "linear: the weight is {} {} [out, in] but the bias is {} {}: expected [out] of the same type",
        name_of(weight.dtype()), weight.shape(), name_of(bias.dtype()), bias.shape());
  check(weight.shape()[1] > 0, "linear: the weight is {} [out, in]: expected at least one column", weight.shape());
  const Shape matrix{x.shape().rows(), weight.shape()[0]}, shape = x.shape().with(-1, weight.shape()[0]);
  Tensor y = result("linear", matrix, x.dtype(), x);
  const bool activated = activation != Unary::identity;
  Tensor pre = keep_pre_activation && activated ? result("linear", matrix, x.dtype(), x) : Tensor{};
  const Tensor rows = x.reshape({matrix[0], x.shape()[-1]});
  gemm(rows, weight, y, {.transpose_b = true, .bias = bias, .activation = activation, .pre_activation = pre});
  if (keep_pre_activation && !activated) pre = y;  // which is what the identity is given
  return {y.reshape(shape), pre ? pre.reshape(shape) : pre};
}
Tensor softmax(const Tensor& x) {
  Tensor y = like("softmax", x);
  run(x.backend(), "softmax", moves(x, y), [&](Kernels& k) { k.softmax(x, y); });
  return y;
}
Tensor softmax_backward(const Tensor& y, const Tensor& dy) {
  check_same("softmax_backward", y, dy);
  Tensor dx = like("softmax_backward", y);
  run(y.backend(), "softmax_backward", moves(y, dy, dx), [&](Kernels& k) { k.softmax_backward(y, dy, dx); });
  return dx;
}

namespace {
void check_norm(const char* op, const Tensor& x, const LayerNorm& options) {
  check_given(op, "x", x);
  check_given(op, "gamma", options.gamma);
  check_given(op, "beta", options.beta);
  const Shape row{x.shape().columns()};
  const auto fits = [&](const Tensor& t) { return t.shape() == row && t.dtype() == x.dtype(); };
  check(fits(options.gamma) && fits(options.beta),
        "{}: x is {} {} but gamma is {} {} and beta is {} {}: both must be as long as x's last axis, and of x's type",
        op, name_of(x.dtype()), x.shape(), name_of(options.gamma.dtype()), options.gamma.shape(),
        name_of(options.beta.dtype()), options.beta.shape());
  check_dropout(op, x, options.dropout);
}
}  // namespace

Normalized layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options) {
  check_norm("layer_norm", x, options);
  if (residual) check_same("layer_norm", x, residual);
  Normalized out{like("layer_norm", x), residual || options.dropout ? like("layer_norm", x) : x,
                 computed("layer_norm", {x.shape().rows(), 2}, x)};
  run(x.backend(), "layer_norm", moves(x, residual, out.sum, out.y),
      [&](Kernels& k) { k.layer_norm(x, residual, options, out.sum, out.y, out.statistics); });
  return out;
}
NormGradients layer_norm_backward(const Normalized& saved, const LayerNorm& options, const Tensor& dy,
                                  const Tensor& dgamma, const Tensor& dbeta) {
  check_same("layer_norm_backward", saved.sum, dy);
  check_norm("layer_norm_backward", dy, options);
  check(saved.statistics.elements() == 2 * dy.shape().rows(),
        "layer_norm_backward: expected what layer_norm() returned for rows of dy {}, got {} statistics", dy.shape(),
        saved.statistics.elements());
  check_computed("layer_norm_backward", "statistics", saved.statistics, dy);
  Tensor dsum = like("layer_norm_backward", dy);
  NormGradients out{options.dropout ? like("layer_norm_backward", dy) : Tensor{}, dsum,
                    destination("layer_norm_backward", {dgamma}, options.gamma.shape(), options.gamma),
                    destination("layer_norm_backward", {dbeta}, options.beta.shape(), options.beta)};
  run(dy.backend(), "layer_norm_backward", moves(saved.sum, dy, dsum, out.dx), [&](Kernels& k) {
    k.layer_norm_backward(saved.sum, saved.statistics, options, dy, dsum, out.dx, out.dgamma, out.dbeta);
  });
  if (!out.dx) out.dx = dsum;
  return out;
}
Tensor gather(const Tensor& table, const Tensor& rows) {
  check_given("gather", "table", table);
  check_given("gather", "rows", rows);
  check_indices("gather", rows);
  check(table.shape().rank() >= 1 && rows.shape().rank() == 1,
        "gather: expected a table [rows, ...] and row numbers [n], got a table {} and row numbers {}", table.shape(),
        rows.shape());
  Tensor out = result("gather", table.shape().with(0, rows.elements()), table.dtype(), table);
  run(table.backend(), "gather", moves(out, out), [&](Kernels& k) { k.gather(table, rows, out); });
  return out;
}
Tensor scatter_add(const Tensor& dy, const Tensor& rows, const Shape& table_shape, const Into& into) {
  check_indices("scatter_add", rows);
  check(dy.shape() == table_shape.with(0, rows.elements()),
        "scatter_add: expected dy {}, a row of the table {} for each of {} row numbers, got {}",
        table_shape.with(0, rows.elements()), table_shape, rows.elements(), dy.shape());
  Tensor out = destination("scatter_add", into, table_shape, dy);
  run(dy.backend(), "scatter_add", moves(dy, dy, dy),
      [&](Kernels& k) { k.scatter_add(dy, rows, out, into.accumulate); });
  return out;
}

namespace {
void check_attention(const Tensor& qkv, const Attention& options) {
  check(qkv.shape().rank() == 2 && options.heads > 0 && qkv.shape()[1] % (3 * options.heads) == 0,
        "attention: qkv must be [tokens, 3 · heads · head_dim], got {} for {} heads", qkv.shape(), options.heads);
  check_given("attention", "offsets", options.offsets);
  check_indices("attention: offsets", options.offsets);
  check(options.offsets.elements() > (qkv.shape()[0] > 0 ? 1 : 0),
        "attention: expected offsets [sequences + 1] for {} tokens, got {} of them", qkv.shape()[0],
        options.offsets.elements());
  check(options.longest >= 0 && options.longest <= qkv.shape()[0],
        "attention: expected a longest sequence of at most all {} tokens, got {}", qkv.shape()[0], options.longest);
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
  Attended out{result("attention", {tokens, qkv.shape()[1] / 3}, qkv.dtype(), qkv),
               computed("attention", {tokens, options.heads}, qkv)};
  run(qkv.backend(), "attention", attention_work(qkv, options, 2),
      [&](Kernels& k) { k.attention(qkv, options, out.context, out.log_sum); });
  return out;
}
Tensor attention_backward(const Tensor& qkv, const Attention& options, const Attended& saved, const Tensor& dcontext) {
  check_attention(qkv, options);
  const Dim tokens = qkv.shape()[0];
  check(
      saved.context.shape() == Shape{tokens, qkv.shape()[1] / 3} && saved.log_sum.elements() == tokens * options.heads,
      "attention_backward: expected what attention() returned for qkv {}, got {} and {}", qkv.shape(),
      saved.context.shape(), saved.log_sum.shape());
  check_computed("attention_backward", "log_sum", saved.log_sum, qkv);
  check_same("attention_backward", saved.context, dcontext);
  Tensor dqkv = like("attention_backward", qkv);
  qkv.backend().plan_scratch([&](const Kernels& k) { return k.attention_backward_workspace(qkv, options); });
  run(qkv.backend(), "attention_backward", attention_work(qkv, options, 5),
      [&](Kernels& k) { k.attention_backward(qkv, options, saved.context, saved.log_sum, dcontext, dqkv); });
  return dqkv;
}

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, double denominator) {
  check_given("cross_entropy", "logits", logits);
  check_given("cross_entropy", "labels", labels);
  check(labels.dtype() == DType::i32 && labels.elements() == logits.shape().rows(),
        "cross_entropy: expected a label of i32 for each row of logits {}, got {} {}", logits.shape(),
        name_of(labels.dtype()), labels.shape());
  CrossEntropy out{computed("cross_entropy", {1}, logits), computed("cross_entropy", {logits.shape().rows()}, logits)};
  run(logits.backend(), "cross_entropy", moves(logits),
      [&](Kernels& k) { k.cross_entropy(logits, labels, denominator, out.log_sum, out.loss); });
  return out;
}
Tensor cross_entropy_backward(Tensor logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                              const Tensor& dy) {
  check(labels.dtype() == DType::i32 && labels.elements() == logits.shape().rows(),
        "cross_entropy_backward: expected a label of i32 for each row of logits {}, got {} {}", logits.shape(),
        name_of(labels.dtype()), labels.shape());
  check(log_sum.elements() == labels.elements() && dy.elements() == 1,
        "cross_entropy_backward: expected a log_sum for each of {} rows and one dy, got {} and {}", labels.elements(),
        log_sum.elements(), dy.elements());
  check_computed("cross_entropy_backward", "log_sum", log_sum, logits);
  check_computed("cross_entropy_backward", "dy", dy, logits);
  Tensor dlogits = logits.unique() ? logits : like("cross_entropy_backward", logits);
  run(logits.backend(), "cross_entropy_backward", moves(logits, dlogits),
      [&](Kernels& k) { k.cross_entropy_backward(logits, labels, denominator, log_sum, dy, dlogits); });
  return dlogits;
}
Tensor point_loss(PointLoss loss, const Tensor& x, const Tensor& target, double denominator) {
  check_same("point_loss", x, target);
  Tensor out = computed("point_loss", {1}, x);
  run(x.backend(), "point_loss", moves(x, target),
      [&](Kernels& k) { k.point_loss(loss, x, target, denominator, out); });
  return out;
}
Tensor point_loss_backward(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                           const Tensor& dy) {
  check_same("point_loss_backward", x, target);
  check(dy.elements() == 1, "point_loss_backward: expected one dy, got {}", dy.shape());
  check_computed("point_loss_backward", "dy", dy, x);
  Tensor dx = like("point_loss_backward", x);
  run(x.backend(), "point_loss_backward", moves(x, target, dx),
      [&](Kernels& k) { k.point_loss_backward(loss, x, target, denominator, dy, dx); });
  return dx;
}
Tensor argmax(const Tensor& x) {
  Tensor out = result("argmax", {x.shape().rows()}, DType::i32, x);
  run(x.backend(), "argmax", moves(x), [&](Kernels& k) { k.argmax(x, out); });
  return out;
}

}  // namespace bertrand::ops
