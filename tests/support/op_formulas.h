// What the ops compute, in plain loops over doubles: slow, obvious, and independent of any kernel.
#pragma once
#include <cmath>

#include "support/op_cases.h"

namespace bertrand::testing {

/// f of every element.
template <class F>
Array each(const Array& x, F&& f) {
  Array y;
  y.reserve(x.size());
  for (const double v : x) y.push_back(f(v));
  return y;
}
/// f(x[i], other[i]); a shorter `other` is repeated as a row.
template <class F>
Array each(const Array& x, const Array& other, F&& f) {
  Array y;
  y.reserve(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(f(x[i], other[i % other.size()]));
  return y;
}

inline double gelu_formula(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
inline double gelu_tanh_formula(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

struct Product {
  Dim rows, depth, columns;
};
/// a [rows, depth] · b [depth, columns]
Array product(const Array& a, const Array& b, const Product& size);
/// x [rows, depth] · weight [columns, depth]ᵀ + bias [columns]
Array affine(const Array& x, const Array& weight, const Array& bias, const Product& size);
/// Indices [begin, end) of the middle axis of x [outer, extent, inner].
struct Cut {
  Dim outer, extent, inner, begin, end;
};
Array cut(const Array& x, const Cut& where);

Array softmax_rows(const Array& x, Dim columns);
Array normalize_rows(const Array& x, const Array& gamma, const Array& beta, double epsilon);
Array pick_rows(const Array& table, const std::vector<std::int32_t>& rows, Dim columns);
/// Σ −log softmax(logits)[label] over rows with a label ≥ 0
double cross_entropy_sum(const Array& logits, const std::vector<std::int32_t>& labels);

struct Heads {
  std::vector<std::int32_t> offsets;  ///< where sequences begin, and the end of the last
  int heads = 1;
  bool dropout = false;  ///< multiply probabilities with multipliers(token, head, length)
};
/// softmax(q kᵀ / √head_dim) v of each sequence and head; qkv [tokens, 3 · hidden].
Array attend(const Array& qkv, Dim hidden, const Heads& heads);

}  // namespace bertrand::testing
