// Attention over packed sequences.
#include <algorithm>
#include <numeric>

#include "support/op_formulas.h"
#include "support/op_values.h"

namespace bertrand::testing {
namespace {

using I = const Inputs&;
using B = Backend&;
using A = const Arrays&;

struct Setting {
  std::vector<std::int32_t> lengths;
  int heads;
  Dim head_dim;
  bool dropout = false;

  std::vector<std::int32_t> offsets() const {
    std::vector<std::int32_t> all(lengths.size() + 1, 0);
    std::partial_sum(lengths.begin(), lengths.end(), all.begin() + 1);
    return all;
  }
  Dim tokens() const { return offsets().back(); }
  Dim hidden() const { return heads * head_dim; }
  Attention options(Backend& b) const {
    return {.offsets = indices(offsets(), b),
            .heads = heads,
            .longest = *std::max_element(lengths.begin(), lengths.end()),
            .dropout = dropout ? some_dropout(tokens(), b) : Dropout{}};
  }
};

/// [rows, columns] with 1 if row = column + shift, else 0: a product with it selects or places.
Variable selection(Dim rows, Dim columns, Dim shift, const Variable& like) {
  Array values(static_cast<std::size_t>(rows * columns), 0.0);
  for (Dim c = 0; c < columns; ++c)
    if (c + shift >= 0 && c + shift < rows) values[static_cast<std::size_t>((c + shift) * columns + c)] = 1;
  return Variable(tensor(values, {rows, columns}, like.value().dtype(), like.value().backend()));
}

/// dropout(softmax(q kᵀ / √d)) v of one head of one sequence.
Variable one_head(const Variable& q, const Variable& k, const Variable& v, const Array& mask) {
  const Dim d = q.shape()[1], length = k.shape()[0];
  Backend& b = q.value().backend();
  const Variable zeros(ops::full({length}, 0, q.value().dtype(), b));
  const Variable k_columns = linear(selection(d, d, 0, q), k, zeros);  // I · kᵀ
  Variable p = softmax(scale(matmul(q, k_columns), 1 / std::sqrt(static_cast<double>(d))));
  if (!mask.empty()) p = mul(p, Variable(tensor(mask, p.shape(), p.value().dtype(), b)));
  return matmul(p, v);
}

/// Every head of every sequence by itself, put in its place by products with ones and zeros, and added.
Variable attention_by_parts(const Variable& qkv, const Setting& setting) {
  const Dim hidden = setting.hidden(), d = setting.head_dim;
  const std::vector<std::int32_t> offsets = setting.offsets();
  Variable all;
  for (std::size_t s = 0; s < setting.lengths.size(); ++s)
    for (int h = 0; h < setting.heads && setting.lengths[s] > 0; ++h) {
      const Variable rows = slice(qkv, 0, offsets[s], offsets[s + 1]);
      const auto part = [&](Dim which) { return slice(rows, 1, which * hidden + h * d, which * hidden + (h + 1) * d); };
      Array mask;
      for (Dim token = offsets[s]; setting.dropout && token < offsets[s + 1]; ++token) {
        const Array row = multipliers(token, static_cast<std::uint32_t>(h), setting.lengths[s]);
        mask.insert(mask.end(), row.begin(), row.end());
      }
      const Variable context = one_head(part(0), part(1), part(2), mask);
      const Variable in_columns = matmul(context, selection(d, hidden, -h * d, qkv));
      const Variable placed = matmul(selection(setting.tokens(), setting.lengths[s], offsets[s], qkv), in_columns);
      all = all ? add(all, placed) : placed;
    }
  return all;
}

OpCase attention_case(const Setting& setting) {
  return {.op = "attention",
          .what = fmt::format("{} heads of {}, lengths {}{}", setting.heads, setting.head_dim,
                              fmt::join(setting.lengths, " "), setting.dropout ? ", with dropout" : ""),
          .inputs = {{setting.tokens(), 3 * setting.hidden()}},
          .run = [setting](I x, B b) { return attention(x[0], setting.options(b)); },
          .least = -2,
          .most = 2,
          .meaning = [setting](I x, B) { return attention_by_parts(x[0], setting); },
          .formula =
              [setting](A x) {
                return attend(x[0], setting.hidden(), {setting.offsets(), setting.heads, setting.dropout});
              }};
}

}  // namespace

std::vector<OpCase> attention_cases() {
  return {
      attention_case({.lengths = {1, 7, 17, 5}, .heads = 2, .head_dim = 3}),
      attention_case({.lengths = {3, 16}, .heads = 3, .head_dim = 5, .dropout = true}),
      attention_case({.lengths = {1}, .heads = 1, .head_dim = 1}),
      attention_case({.lengths = {5, 0, 9}, .heads = 2, .head_dim = 4}),
      attention_case({.lengths = {1, 31, 130, 2}, .heads = 2, .head_dim = 32}),
      attention_case({.lengths = {1, 99, 15, 128}, .heads = 2, .head_dim = 32, .dropout = true}),
      attention_case({.lengths = {201, 1, 64}, .heads = 1, .head_dim = 64}),
      attention_case({.lengths = {97, 195}, .heads = 2, .head_dim = 64, .dropout = true}),
      attention_case({.lengths = {70, 195}, .heads = 1, .head_dim = 128, .dropout = true}),
      attention_case({.lengths = {150, 7}, .heads = 2, .head_dim = 16, .dropout = true}),
      attention_case({.lengths = {9, 40}, .heads = 1, .head_dim = 157}),  // the widest in f64 that fits on every GPU
  };
}

std::vector<OpCase> large_attention_cases() {
  std::vector<OpCase> cases;
  for (const bool dropout : {false, true})
    cases.push_back(attention_case({.lengths = {512, 300, 512}, .heads = 12, .head_dim = 64, .dropout = dropout}));
  cases.push_back(attention_case({.lengths = {9, 40}, .heads = 1, .head_dim = 256}));  // the widest there is
  return cases;
}

}  // namespace bertrand::testing
