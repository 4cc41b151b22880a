// Everything that a device must be able to compute, on one page.
//
// Rule: the op (tensor/ops.h) checks shapes and allocates; the kernel only fills `out`. Shapes below are written with
// the words of the whole project: tokens, hidden, heads, head_dim, vocab, rows, columns, classes.
//
// Types: the floating tensors of one call share one type T: f32, f64, or f16 or bf16, which only memory holds. Kernels
// load T, compute and sum in Compute<T> (tensor/dtype.h: f32, for f64 f64), and round to T once, when they store.
// Tensors marked "Compute" below are of that type: what is summed to one number, statistics, losses and the gradient of
// a loss.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace bertrand {

struct Update;  // tensor/update.h, as the next two
struct UpdateSegment;
struct UpdateTensors;

/// Functions of one element. gelu is x Φ(x) (Hendrycks and Gimpel 2016), gelu_tanh their approximation of it, which
/// google-research/bert takes: 0.5x(1+tanh(√(2/π)(x+0.044715x³))). log, sqrt and div give what std::log, std::sqrt and
/// / give outside their domain.
enum class Unary : std::uint8_t { identity, relu, tanh, gelu, gelu_tanh, exp, log, sqrt, neg };
constexpr const char* name_of(Unary op) {
  switch (op) {
    case Unary::identity: return "identity";
    case Unary::relu: return "relu";
    case Unary::tanh: return "tanh";
    case Unary::gelu: return "gelu";
    case Unary::gelu_tanh: return "gelu_tanh";
    case Unary::exp: return "exp";
    case Unary::log: return "log";
    case Unary::sqrt: return "sqrt";
    case Unary::neg: return "neg";
  }
  __builtin_unreachable();
}
/// What is applied to the result of a layer: any function of one element.
using Activation = Unary;
enum class Binary : std::uint8_t { add, sub, mul, div };
constexpr const char* name_of(Binary op) {
  switch (op) {
    case Binary::add: return "add";
    case Binary::sub: return "sub";
    case Binary::mul: return "mul";
    case Binary::div: return "div";
  }
  __builtin_unreachable();
}
/// Losses of one element x against one target t: (x − t)², and −t ln σ(x) − (1 − t) ln(1 − σ(x)), where σ is the
/// logistic function 1 / (1 + e^−x).
enum class PointLoss : std::uint8_t { squared_error, binary_cross_entropy_with_logits };

/// out = op(a) · op(b) (+ out) (+ bias), then optionally an activation.
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  ///< add to what `out` holds; not together with bias or activation
  Tensor bias = {};         ///< [columns of out], or empty
  Activation activation = Activation::identity;
  Tensor pre_activation = {};  ///< [as out] receives what the activation was applied to, or empty
};

/// Which elements a dropout keeps: a pure function of (key, row key, plane, column), so a mask is never stored and does
/// not depend on the order of execution. The plane is attention's head, and 0 elsewhere. Element kept iff its 16 Philox
/// bits ≥ threshold; kept ones are scaled by 65536 / (65536 − threshold), so the mean is exact for the rounded
/// probability.
struct Dropout {
  std::uint32_t threshold = 0;  ///< probability · 65536, rounded, less than 65536; 0 is off
  std::uint64_t key = 0;        ///< names seed, step and site
  Tensor row_keys = {};         ///< i64 [rows]: names each row wherever it is computed

  explicit operator bool() const { return threshold != 0; }
  double scale() const { return 65536.0 / (65536.0 - threshold); }
};

/// Softmax(q · kᵀ / √head_dim) · v for each sequence and head by itself.
/// qkv [tokens, 3 · heads · head_dim]: query, key and value side by side; offsets i32 [sequences + 1].
struct Attention {
  Tensor offsets;
  int heads = 1;
  Dim longest = 0;  ///< length of the longest sequence
  Dropout dropout = {};
};

/// y = norm(dropout(x) + residual) · gamma + beta over the last axis, biased variance (Ba et al. 2016).
struct LayerNorm {
  Tensor gamma;  ///< [hidden]
  Tensor beta;   ///< [hidden]
  double epsilon = 1e-12;
  Dropout dropout = {};  ///< of x, before the residual is added
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  // ---- elements
  virtual void fill(const Tensor& out, double value) = 0;
  /// Any dtype to any dtype; a copy between equal ones. f64 becomes a half type by way of f32. What an integer cannot
  /// hold becomes any integer.
  virtual void cast(const Tensor& x, const Tensor& out) = 0;
  /// out = x, of one dtype, past the caches if the processor can: for what the core of another process reads next.
  /// Reading from a distant core's cache takes several times as long as from memory.
  virtual void copy_past_caches(const Tensor& x, const Tensor& out) { cast(x, out); }
  virtual void unary(Unary op, const Tensor& x, const Tensor& out) = 0;
  /// `sum_of_rows` [columns] receives the sum of dx's rows, or is empty.
  virtual void unary_backward(Unary op, const Tensor& x, const Tensor& dy, const Tensor& dx,
                              const Tensor& sum_of_rows) = 0;
  /// b repeats over a's leading axes; out may be a. If a and out are f32, b may be of any half type.
  virtual void binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& out) = 0;
  virtual void scale(const Tensor& x, double factor, const Tensor& out) = 0;
  virtual void expand(const Tensor& scalar, double factor,
                      const Tensor& out) = 0;  ///< every element = scalar · factor, of any two floating types
  /// `columns` elements of each of `rows` rows. x_stride and out_stride are the distances between row starts, in
  /// elements.
  virtual void copy_block(const Tensor& x, Dim x_stride, const Tensor& out, Dim out_stride, Dim rows, Dim columns) = 0;
  virtual void dropout(const Tensor& x, const Dropout& dropout, const Tensor& out) = 0;  ///< x [rows, columns]

  // ---- sums: in an order that depends on the shape alone
  virtual void sum(const Tensor& x, double factor, const Tensor& out) = 0;  ///< out [1] Compute = factor · Σ x
  virtual void sum_rows(const Tensor& x, const Tensor& out) = 0;            ///< [rows, columns] → [columns]
  /// out f64 [1] = √Σx²; NaN or inf if any x is. Squares are Compute: those of f32 overflow beyond 1.8e19.
  virtual void norm(const Tensor& x, const Tensor& out) = 0;
  virtual Dim first_non_finite(const Tensor& x) = 0;  ///< index, or −1; synchronizes

  // ---- layers
  virtual void gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) = 0;
  /// Over the last axis. Where it would be below 2^-126 it is that or 0.
  virtual void softmax(const Tensor& x, const Tensor& y) = 0;
  virtual void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) = 0;
  /// sum [rows, hidden] receives dropout(x) + residual; residual may be empty, and without it and dropout sum is x.
  /// statistics [rows, 2] Compute: mean and 1/σ of sum as it is stored.
  virtual void layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options, const Tensor& sum,
                          const Tensor& y, const Tensor& statistics) = 0;
  /// dsum is the gradient of `sum`, which is also that of the residual; dx its masked copy (empty if there is no
  /// dropout).
  virtual void layer_norm_backward(const Tensor& sum, const Tensor& statistics, const LayerNorm& options,
                                   const Tensor& dy, const Tensor& dsum, const Tensor& dx, const Tensor& dgamma,
                                   const Tensor& dbeta) = 0;
  // Row numbers, labels and offsets are the one thing that a kernel checks, because it reads them anyway. On the CPU it
  // throws Error(Failure::bug) before it writes anything. On a GPU it leaves out what they would choose, and the next
  // download throws. The message names op, index, value and range (tensor/index_check.h).
  /// out [k, width] = rows of table [n, width], by their numbers i32 [k], each in [0, n).
  virtual void gather(const Tensor& table, const Tensor& rows, const Tensor& out) = 0;
  /// dtable [n, width] (+)= rows of dy [k, width] summed by number, in order; without accumulate every other row
  /// becomes 0.
  virtual void scatter_add(const Tensor& dy, const Tensor& rows, const Tensor& dtable, bool accumulate) = 0;
  /// context [tokens, heads · head_dim]; log_sum [tokens, heads] Compute is the one number per row that backward needs.
  virtual void attention(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum) = 0;
  virtual void attention_backward(const Tensor& qkv, const Attention& options, const Tensor& context,
                                  const Tensor& log_sum, const Tensor& dcontext, const Tensor& dqkv) = 0;

  // ---- losses
  // Their out and dy are [1] Compute.
  /// out = Σ −log softmax(logits)[label] / denominator over rows with label ≥ 0; log_sum [rows] Compute is kept for
  /// backward.
  virtual void cross_entropy(const Tensor& logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                             const Tensor& out) = 0;
  virtual void cross_entropy_backward(const Tensor& logits, const Tensor& labels, double denominator,
                                      const Tensor& log_sum, const Tensor& dy,
                                      const Tensor& dlogits) = 0;  ///< dlogits may be logits
  /// out = Σ loss(x, target) / denominator
  virtual void point_loss(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                          const Tensor& out) = 0;
  virtual void point_loss_backward(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                                   const Tensor& dy, const Tensor& dx) = 0;
  /// [rows, columns] → i32 [rows]: the first of equals, any of a row with NaN
  virtual void argmax(const Tensor& x, const Tensor& out) = 0;

  // ---- the optimizer: one pass over the flat tensors
  virtual void update(const UpdateTensors& tensors, const Update& update, std::span<const UpdateSegment> segments) = 0;

  // ---- scratch memory of a kernel in bytes, for memory plans; kernels that take little are not listed
  virtual std::size_t gemm_workspace(const Tensor& /*a*/, const Tensor& /*out*/, const Gemm&) const { return 0; }
  virtual std::size_t attention_backward_workspace(const Tensor& /*qkv*/, const Attention&) const { return 0; }
};

}  // namespace bertrand
