// Ops on tensors: check shapes, allocate, call the kernel. Nothing here knows of gradients; autograd/ does.
//
// A result has the type of the op's first tensor unless it says otherwise. Each op throws Error(Failure::bug), which
// names it, if shapes or types do not fit or a tensor is empty that may not be, and Error(Failure::memory) if there is
// none left. Row numbers, labels and offsets out of range are an Error(Failure::bug) that names op, index, value and
// range: at once on the CPU, with the next download on a GPU. tensor/kernels.h has the formulas.
#pragma once
#include <vector>

#include "tensor/backend.h"

namespace bertrand::ops {

/// Where a result goes: into a new tensor, or into `out`, overwriting or adding.
struct Into {
  Tensor out = {};
  bool accumulate = false;
};

// ---- making tensors
Tensor full(const Shape& shape, double value, DType dtype, Backend& backend);
void fill(const Tensor& out, double value);
/// Copies host values (row-major) to the device.
template <class T>
Tensor from_host(std::span<const T> values, const Shape& shape, Backend& backend) {
  check(static_cast<Dim>(values.size()) == shape.elements(), "from_host: expected {} values for {}, got {}",
        shape.elements(), shape, values.size());
  Tensor out(shape, dtype_of<T>(), backend);
  backend.upload(values.data(), out);
  return out;
}
template <class T>
Tensor from_host(const std::vector<T>& values, const Shape& shape, Backend& backend) {
  return from_host(std::span<const T>(values), shape, backend);
}
/// Copies to the host, converting to T. Synchronizes. An empty Tensor is an error.
template <class T>
std::vector<T> to_host(const Tensor& x);
/// The one element of x, as a double. Synchronizes.
double item(const Tensor& x);

// ---- elements
Tensor cast(const Tensor& x, DType dtype);  ///< x itself if it has this type
Tensor copy(const Tensor& x);
void copy_into(const Tensor& x, const Tensor& out);  ///< as many elements, any dtypes
Tensor unary(Unary op, const Tensor& x);
/// dx = dy · op'(x). `sum_of_rows` [last axis] receives the sum of dx's rows, or is empty.
Tensor unary_backward(Unary op, const Tensor& x, const Tensor& dy, const Tensor& sum_of_rows = {});
/// a + b, a − b, a · b or a / b. b has a's shape, or a's trailing dimensions: it is then used for every row.
Tensor binary(Binary op, const Tensor& a, const Tensor& b);
void add_into(const Tensor& x, const Tensor& out);  ///< out += x; an f32 out takes x of the half types too
Tensor scale(const Tensor& x, double factor);       ///< factor · x
/// Every element is factor · scalar [1].
Tensor expand(const Tensor& scalar, double factor, const Shape& shape, DType dtype);
/// Elements [begin, end) along an axis, copied.
Tensor slice(const Tensor& x, int axis, Dim begin, Dim end);
/// The transpose of slice: dy placed at [begin, …) of a zero tensor of `shape`.
Tensor slice_backward(const Tensor& dy, const Shape& shape, int axis, Dim begin);
Tensor dropout(const Tensor& x, const Dropout& dropout);  ///< rows of the last axis

// ---- sums
Tensor sum(const Tensor& x, double factor = 1);  ///< [1], in compute_type
/// Over the leading axes: what is left has the shape `trailing`, x's last axes, and is written to `out` if that is
/// given.
Tensor sum_to(const Tensor& x, const Shape& trailing, const Tensor& out = {});
Tensor norm(const Tensor& x);  ///< √Σ x², f64 [1]
/// The index of the first element that is not finite, or −1. Synchronizes.
Dim first_non_finite(const Tensor& x);

// ---- layers
struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
  Into into = {};
};
/// op(a) [rows, depth] · op(b) [depth, columns], where op transposes if the options say so.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});
/// x [rows, in] · weight [out, in]ᵀ + bias [out] (bias may be empty); x may have more leading axes.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
struct Activated {
  Tensor y, pre_activation;  ///< both of linear()'s shape
};
/// activation(linear(x)); pre_activation is empty unless asked for.
Activated linear_activation(const Tensor& x, const Tensor& weight, const Tensor& bias, Unary activation,
                            bool keep_pre_activation);
Tensor softmax(const Tensor& x);                             ///< over the last axis
Tensor softmax_backward(const Tensor& y, const Tensor& dy);  ///< y = softmax(x)
struct Normalized {
  Tensor y, sum;      ///< as x
  Tensor statistics;  ///< [rows, 2] in compute_type: mean and 1/σ of each row of sum
};
/// norm(dropout(x) + residual) over the last axis; residual may be empty. `sum` is x itself if nothing is added or
/// dropped.
Normalized layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options);
struct NormGradients {
  Tensor dx, dresidual;  ///< as x; one tensor if nothing is dropped
  Tensor dgamma, dbeta;  ///< [hidden]
};
/// dgamma and dbeta may be given a place, which they overwrite.
NormGradients layer_norm_backward(const Normalized& saved, const LayerNorm& options, const Tensor& dy,
                                  const Tensor& dgamma = {}, const Tensor& dbeta = {});
/// Rows of table [n, …] by their numbers, i32 [k].
Tensor gather(const Tensor& table, const Tensor& rows);
/// The transpose of gather: row r of the result is the sum of the rows of dy [k, …] whose number is r.
Tensor scatter_add(const Tensor& dy, const Tensor& rows, const Shape& table_shape, const Into& into = {});
struct Attended {
  Tensor context;  ///< [tokens, heads · head_dim]
  Tensor log_sum;  ///< [tokens, heads] in compute_type
};
/// qkv [tokens, 3 · heads · head_dim]
Attended attention(const Tensor& qkv, const Attention& options);
Tensor attention_backward(const Tensor& qkv, const Attention& options, const Attended& saved, const Tensor& dcontext);

// ---- losses: scalars [1] in compute_type, as what is kept for backward
struct CrossEntropy {
  Tensor loss;     ///< [1]
  Tensor log_sum;  ///< [rows], of no meaning in rows without a label
};
/// logits [rows, classes]; labels i32 [rows], negative in rows without one.
CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, double denominator);
/// Takes logits by value: if nothing else holds them the gradient overwrites them.
Tensor cross_entropy_backward(Tensor logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                              const Tensor& dy);
/// target as x
Tensor point_loss(PointLoss loss, const Tensor& x, const Tensor& target, double denominator);
Tensor point_loss_backward(PointLoss loss, const Tensor& x, const Tensor& target, double denominator, const Tensor& dy);
Tensor argmax(const Tensor& x);  ///< of each row of the last axis, i32 [rows]; the first of equals

}  // namespace bertrand::ops
