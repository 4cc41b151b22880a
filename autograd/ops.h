// The differentiable ops. Each is one function in its .cpp: compute, then how the gradient flows back. What each
// computes stands in plain loops in tests/support/op_formulas.cpp and in its row of tests/support/op_cases_*.cpp. As
// the ops of tensor/ops.h, each throws Error(Failure::bug), which names it, if shapes or types do not fit.
#pragma once
#include "autograd/engine.h"

namespace bertrand {

// ---- elements (autograd/elementwise.cpp); a + b, 2 * x and their like: autograd/operators.h
// b has a's shape, or a's last axes: then it is repeated over the others.
Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);
Variable neg(const Variable& x);
Variable exp(const Variable& x);
Variable log(const Variable& x);
Variable sqrt(const Variable& x);
Variable scale(const Variable& x, double factor);
Variable tanh(const Variable& x);
Variable relu(const Variable& x);
Variable gelu(const Variable& x);       ///< x Φ(x), Hendrycks and Gimpel 2016
Variable gelu_tanh(const Variable& x);  ///< its approximation by tanh
Variable cast(const Variable& x, DType dtype);
/// Keeps each element with probability 1 − p and scales it (Srivastava et al. 2014); x [rows, columns].
Variable dropout(const Variable& x, const Dropout& dropout);

// ---- shape and sums (autograd/shape.cpp)
Variable reshape(const Variable& x, const Shape& shape);          ///< the same elements in the same order
Variable slice(const Variable& x, int axis, Dim begin, Dim end);  ///< [begin, end) along an axis; −1 is the last
Variable sum(const Variable& x);                                  ///< [1]
Variable mean(const Variable& x);                                 ///< [1]

// ---- products (autograd/linear.cpp)
Variable matmul(const Variable& a, const Variable& b);  ///< [m, k] · [k, n]
/// activation(x [rows, in] · weight [out, in]ᵀ + bias [out]) in one pass. Without a bias: matmul().
Variable linear(const Variable& x, const Variable& weight, const Variable& bias,
                Activation activation = Activation::identity);

// ---- normalisation (autograd/normalization.cpp)
Variable softmax(const Variable& x);  ///< over the last axis
/// (x − mean) / √(variance + epsilon) · gamma [hidden] + beta [hidden] over the last axis, Ba et al. 2016
Variable layer_norm(const Variable& x, const Variable& gamma, const Variable& beta, double epsilon);
struct NormOptions {
  double epsilon = 1e-12;
  Dropout dropout = {};
};
/// layer_norm(dropout(x) + residual)
Variable dropout_add_layer_norm(const Variable& x, const Variable& residual, const Variable& gamma,
                                const Variable& beta, const NormOptions& options);

// ---- rows (autograd/embedding.cpp): indices are i32
Variable embedding(const Variable& table, const Tensor& ids);  ///< [vocab, hidden], [n] → [n, hidden]
Variable gather_rows(const Variable& x, const Tensor& rows);   ///< [rows, hidden], [n] → [n, hidden]

// ---- attention (autograd/attention.cpp), Vaswani et al. 2017
/// qkv [tokens, 3 · hidden] → [tokens, hidden]; every sequence sees only itself.
Variable attention(const Variable& qkv, const Attention& options);

// ---- losses (autograd/loss.cpp): sums over the whole input divided by `denominator`, [1]
/// logits [rows, classes], labels i32 [rows]; rows with a negative label are ignored.
Variable softmax_cross_entropy(const Variable& logits, const Tensor& labels, double denominator);
Variable mse(const Variable& x, const Tensor& target, double denominator);  ///< Σ (x − target)² / denominator
/// Σ (−t ln σ(x) − (1 − t) ln(1 − σ(x))) / denominator, where σ(x) = 1 / (1 + e^−x) and t is x's target
Variable binary_cross_entropy_with_logits(const Variable& x, const Tensor& target, double denominator);

}  // namespace bertrand
