#include "autograd/op_cases.h"

#include <cmath>
#include <numeric>

#include "tensor/random.h"

namespace bertrand::testing {
namespace {

Tensor indices(const std::vector<std::int32_t>& values, Backend& b) { return ops::from_host(values, {static_cast<Dim>(values.size())}, b); }

/// Every third of `count` rows of a table of `rows`, some of them twice.
Tensor some_rows(Dim count, Dim rows, Backend& b) {
  std::vector<std::int32_t> picked;
  for (Dim i = 0; i < count; ++i) picked.push_back(static_cast<std::int32_t>(i * 3 % rows));
  return indices(picked, b);
}

Tensor labels(Dim rows, Dim classes, bool ignore_some, Backend& b) {
  std::vector<std::int32_t> values;
  for (Dim i = 0; i < rows; ++i) values.push_back(ignore_some && i % 4 == 1 ? -1 : static_cast<std::int32_t>(i * 5 % classes));
  return indices(values, b);
}

Tensor constant(const Shape& shape, DType dtype, std::uint64_t key, Backend& b) {
  Random random(key);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (double& v : values) v = random.uniform();
  return ops::cast(ops::from_host(values, shape, b), dtype);
}

Dropout some_dropout(Dim rows, Backend& b) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(rows));
  std::iota(keys.begin(), keys.end(), 70);
  return {.threshold = 13107, .key = 5, .row_keys = ops::from_host(keys, {rows}, b)};
}

/// x ∘ the multipliers of a dropout, which are what it makes of ones.
Variable masked(const Variable& x, const Dropout& dropout) {
  return mul(x, Variable(ops::dropout(ops::full(x.shape(), 1, x.value().dtype(), x.value().backend()), dropout)));
}

Variable plus(const Variable& x, double c) { return add(x, Variable(ops::full(x.shape(), c, x.value().dtype(), x.value().backend()))); }
Variable minus(const Variable& a, const Variable& b) { return add(a, scale(b, -1)); }

const std::vector<std::int32_t> kOffsets{0, 1, 8, 25, 30, 130};  // sequences of 1, 7, 17, 5 and 100
Attention packed(int heads, bool drop, Backend& b) {
  return {.offsets = indices(kOffsets, b), .heads = heads, .longest = 100, .dropout = drop ? some_dropout(kOffsets.back(), b) : Dropout{}};
}
/// Softmax(q kᵀ / √d) v, a sequence and a head at a time, put together by adding zero-padded pieces.
Variable attention_by_parts(const Variable& qkv, const Attention& options, Backend& b) {
  const Dim hidden = qkv.shape()[1] / 3, d = hidden / options.heads, tokens = qkv.shape()[0];
  Variable all;
  for (std::size_t s = 0; s + 1 < kOffsets.size(); ++s)
    for (int h = 0; h < options.heads; ++h) {
      const Dim begin = kOffsets[s], end = kOffsets[s + 1], length = end - begin;
      const Variable rows = slice(qkv, 0, begin, end);
      const auto part = [&](Dim which) { return slice(rows, 1, which * hidden + h * d, which * hidden + (h + 1) * d); };
      // k as columns: kᵀ = I · kᵀ through linear(I, k).
      std::vector<double> eye(static_cast<std::size_t>(d * d), 0.0);
      for (Dim i = 0; i < d; ++i) eye[static_cast<std::size_t>(i * d + i)] = 1;
      const Variable identity(ops::cast(ops::from_host(eye, {d, d}, b), qkv.value().dtype()));
      const Variable k_columns = linear(identity, part(1), Variable(ops::full({length}, 0, qkv.value().dtype(), b)));
      const Variable p = softmax(scale(matmul(part(0), k_columns), 1 / std::sqrt(static_cast<double>(d))));
      const Variable context = matmul(p, part(2));
      // Placed by products with selection matrices.
      std::vector<double> left(static_cast<std::size_t>(tokens * length), 0.0), right(static_cast<std::size_t>(d * hidden), 0.0);
      for (Dim i = 0; i < length; ++i) left[static_cast<std::size_t>((begin + i) * length + i)] = 1;
      for (Dim i = 0; i < d; ++i) right[static_cast<std::size_t>(i * hidden + h * d + i)] = 1;
      const Variable place_rows(ops::cast(ops::from_host(left, {tokens, length}, b), qkv.value().dtype()));
      const Variable place_columns(ops::cast(ops::from_host(right, {d, hidden}, b), qkv.value().dtype()));
      const Variable placed = matmul(matmul(place_rows, context), place_columns);
      all = all ? add(all, placed) : placed;
    }
  return all;
}

std::vector<OpCase> make_cases() {
  using I = const Inputs&;
  using B = Backend&;
  return {
      // ---- elements
      {"add", "equal shapes", {{7, 33}, {7, 33}}, [](I x, B) { return add(x[0], x[1]); }},
      {"add", "a row to every row", {{65, 17}, {17}}, [](I x, B) { return add(x[0], x[1]); }},
      {"add", "to itself", {{5, 3}}, [](I x, B) { return add(x[0], x[0]); }},
      {"mul", "equal shapes", {{7, 33}, {7, 33}}, [](I x, B) { return mul(x[0], x[1]); }},
      {"mul", "a row with every row", {{65, 17}, {17}}, [](I x, B) { return mul(x[0], x[1]); }},
      {"scale", "", {{3, 100}}, [](I x, B) { return scale(x[0], -2.5); }},
      {"tanh", "", {{4, 41}}, [](I x, B) { return tanh(x[0]); }, {}, -3, 3},
      {"relu", "", {{4, 41}}, [](I x, B) { return relu(x[0]); }, {}, -1, 1, 1e-3},
      {"gelu", "erf", {{4, 41}}, [](I x, B) { return gelu(x[0], Gelu::erf); }, {}, -4, 4},
      {"gelu", "tanh", {{4, 41}}, [](I x, B) { return gelu(x[0], Gelu::tanh); },
       [](I x, B) {  // 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
         const Variable inner = scale(add(x[0], scale(mul(mul(x[0], x[0]), x[0]), 0.044715)), std::sqrt(2 / 3.14159265358979323846));
         return scale(mul(x[0], plus(tanh(inner), 1)), 0.5);
       }, -4, 4},
      {"cast", "to its own type", {{6, 7}}, [](I x, B) { return cast(x[0], x[0].value().dtype()); }},
      {"dropout", "", {{9, 300}}, [](I x, B b) { return dropout(x[0], some_dropout(9, b)); }, [](I x, B b) { return masked(x[0], some_dropout(9, b)); }},
      // ---- shape and sums
      {"reshape", "", {{6, 10}}, [](I x, B) { return reshape(x[0], {4, 15}); }},
      {"slice", "of the first axis", {{9, 5, 3}}, [](I x, B) { return slice(x[0], 0, 2, 7); }},
      {"slice", "of a middle axis", {{4, 9, 3}}, [](I x, B) { return slice(x[0], 1, 3, 8); }},
      {"slice", "of the last axis", {{4, 9}}, [](I x, B) { return slice(x[0], -1, 8, 9); }},
      {"sum", "", {{33, 300}}, [](I x, B) { return sum(x[0]); }},
      {"mean", "", {{7, 11}}, [](I x, B) { return mean(x[0]); }},
      // ---- products
      {"matmul", "", {{13, 40}, {40, 21}}, [](I x, B) { return matmul(x[0], x[1]); }},
      {"matmul", "by itself", {{7, 7}}, [](I x, B) { return matmul(x[0], x[0]); }},
      {"matmul", "deeper than a block", {{3, 500}, {500, 2}}, [](I x, B) { return matmul(x[0], x[1]); }},
      {"linear", "", {{70, 12}, {33, 12}, {33}}, [](I x, B) { return linear(x[0], x[1], x[2]); }},
      {"linear", "one row", {{1, 100}, {7, 100}, {7}}, [](I x, B) { return linear(x[0], x[1], x[2]); }},
      {"linear_gelu", "erf", {{20, 12}, {33, 12}, {33}}, [](I x, B) { return linear_gelu(x[0], x[1], x[2], Gelu::erf); },
       [](I x, B) { return gelu(linear(x[0], x[1], x[2]), Gelu::erf); }},
      {"linear_gelu", "tanh", {{20, 12}, {33, 12}, {33}}, [](I x, B) { return linear_gelu(x[0], x[1], x[2], Gelu::tanh); },
       [](I x, B) { return gelu(linear(x[0], x[1], x[2]), Gelu::tanh); }},
      // ---- normalisation
      {"softmax", "", {{9, 33}}, [](I x, B) { return softmax(x[0]); }, {}, -3, 3},
      {"softmax", "one column", {{4, 1}}, [](I x, B) { return softmax(x[0]); }},
      {"layer_norm", "", {{67, 33}, {33}, {33}}, [](I x, B) { return layer_norm(x[0], x[1], x[2], 1e-5); }},
      {"dropout_add_layer_norm", "without dropout", {{9, 20}, {9, 20}, {20}, {20}},
       [](I x, B) { return dropout_add_layer_norm(x[0], x[1], x[2], x[3], {.epsilon = 1e-5}); },
       [](I x, B) { return layer_norm(add(x[0], x[1]), x[2], x[3], 1e-5); }},
      {"dropout_add_layer_norm", "with dropout", {{67, 140}, {67, 140}, {140}, {140}},
       [](I x, B b) { return dropout_add_layer_norm(x[0], x[1], x[2], x[3], {.epsilon = 1e-5, .dropout = some_dropout(67, b)}); },
       [](I x, B b) { return layer_norm(add(masked(x[0], some_dropout(67, b)), x[1]), x[2], x[3], 1e-5); }},
      // ---- rows
      {"embedding", "", {{17, 70}}, [](I x, B b) { return embedding(x[0], some_rows(30, 17, b)); }},
      {"gather_rows", "", {{17, 5}}, [](I x, B b) { return gather_rows(x[0], some_rows(4, 17, b)); }},
      // ---- attention
      {"attention", "sequences of many lengths", {{130, 18}}, [](I x, B b) { return attention(x[0], packed(2, false, b)); },
       [](I x, B b) { return attention_by_parts(x[0], packed(2, false, b), b); }, -2, 2},
      {"attention", "with dropout", {{130, 12}}, [](I x, B b) { return attention(x[0], packed(2, true, b)); }, {}, -2, 2},
      // ---- losses
      {"softmax_cross_entropy", "", {{9, 33}}, [](I x, B b) { return softmax_cross_entropy(x[0], labels(9, 33, false, b), 9); }, {}, -3, 3},
      {"softmax_cross_entropy", "with ignored rows", {{9, 33}}, [](I x, B b) { return softmax_cross_entropy(x[0], labels(9, 33, true, b), 6); }, {}, -3, 3},
      {"mse", "", {{31, 1}}, [](I x, B b) { return mse(x[0], constant({31, 1}, x[0].value().dtype(), 8, b), 31); },
       [](I x, B b) {
         const Variable d = minus(x[0], Variable(constant({31, 1}, x[0].value().dtype(), 8, b)));
         return mean(mul(d, d));
       }},
      {"binary_cross_entropy_with_logits", "", {{6, 4}}, [](I x, B b) { return binary_cross_entropy_with_logits(x[0], constant({6, 4}, x[0].value().dtype(), 8, b), 24); }, {}, -5, 5},
  };
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = make_cases();
  return cases;
}

Inputs make_inputs(const OpCase& c, DType dtype, Backend& backend) {
  Inputs inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    Random random(100 + i);
    std::vector<double> values(static_cast<std::size_t>(c.inputs[i].elements()));
    for (double& v : values) {
      v = static_cast<float>(c.least + (c.most - c.least) * random.uniform());  // a number that f32 holds too
      if (std::abs(v) < c.keep_away) v = c.keep_away;
    }
    inputs.emplace_back(ops::cast(ops::from_host(values, c.inputs[i], backend), dtype), true);
  }
  return inputs;
}

Variable project(const Variable& result) {
  return sum(mul(result, Variable(constant(result.shape(), result.value().dtype(), 3, result.value().backend()))));
}

std::vector<std::vector<double>> run_both_ways(const OpCase& c, DType dtype, Backend& backend, bool by_meaning) {
  const Inputs inputs = make_inputs(c, dtype, backend);
  std::vector<std::vector<double>> all;
  {
    const Variable result = by_meaning ? c.meaning(inputs, backend) : c.run(inputs, backend);
    all.push_back(ops::to_host<double>(result.value()));
    backward(project(result));
  }
  for (const Variable& input : inputs) all.push_back(ops::to_host<double>(input.grad()));
  return all;
}

}  // namespace bertrand::testing
