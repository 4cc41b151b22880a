// The formulas that take more than a line: products, cuts, functions of rows, attention.
#include "support/op_formulas.h"

#include <algorithm>

#include "support/op_values.h"

namespace bertrand::testing {
namespace {

std::size_t at(Dim i) { return static_cast<std::size_t>(i); }

}  // namespace

Array product(const Array& a, const Array& b, const Product& size) {
  Array y(at(size.rows * size.columns), 0.0);
  for (Dim i = 0; i < size.rows; ++i)
    for (Dim k = 0; k < size.depth; ++k)
      for (Dim j = 0; j < size.columns; ++j)
        y[at(i * size.columns + j)] += a[at(i * size.depth + k)] * b[at(k * size.columns + j)];
  return y;
}

Array affine(const Array& x, const Array& weight, const Array& bias, const Product& size) {
  Array y(at(size.rows * size.columns));
  for (Dim i = 0; i < size.rows; ++i)
    for (Dim j = 0; j < size.columns; ++j) {
      double sum = bias[at(j)];
      for (Dim k = 0; k < size.depth; ++k) sum += x[at(i * size.depth + k)] * weight[at(j * size.depth + k)];
      y[at(i * size.columns + j)] = sum;
    }
  return y;
}

Array cut(const Array& x, const Cut& where) {
  Array y;
  for (Dim o = 0; o < where.outer; ++o)
    for (Dim e = where.begin; e < where.end; ++e)
      for (Dim i = 0; i < where.inner; ++i) y.push_back(x[at((o * where.extent + e) * where.inner + i)]);
  return y;
}

Array softmax_rows(const Array& x, Dim columns) {
  Array y(x.size());
  for (std::size_t row = 0; row < x.size(); row += at(columns)) {
    double total = 0;
    for (std::size_t i = row; i < row + at(columns); ++i) total += std::exp(x[i]);
    for (std::size_t i = row; i < row + at(columns); ++i) y[i] = std::exp(x[i]) / total;
  }
  return y;
}

Array normalize_rows(const Array& x, const Array& gamma, const Array& beta, double epsilon) {
  const std::size_t columns = gamma.size();
  Array y(x.size());
  for (std::size_t row = 0; row < x.size(); row += columns) {
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < columns; ++c) mean += x[row + c] / static_cast<double>(columns);
    for (std::size_t c = 0; c < columns; ++c)
      variance += (x[row + c] - mean) * (x[row + c] - mean) / static_cast<double>(columns);
    for (std::size_t c = 0; c < columns; ++c)
      y[row + c] = (x[row + c] - mean) / std::sqrt(variance + epsilon) * gamma[c] + beta[c];
  }
  return y;
}

Array pick_rows(const Array& table, const std::vector<std::int32_t>& rows, Dim columns) {
  Array y;
  for (const std::int32_t row : rows)
    for (Dim c = 0; c < columns; ++c) y.push_back(table[at(row * columns + c)]);
  return y;
}

double cross_entropy_sum(const Array& logits, const std::vector<std::int32_t>& labels) {
  const std::size_t columns = logits.size() / std::max<std::size_t>(1, labels.size());
  double loss = 0;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    if (labels[r] < 0) continue;
    double total = 0;
    for (std::size_t c = 0; c < columns; ++c) total += std::exp(logits[r * columns + c]);
    loss += std::log(total) - logits[r * columns + at(labels[r])];
  }
  return loss;
}

Array attend(const Array& qkv, Dim hidden, const Heads& options) {
  const Dim head_dim = hidden / options.heads, stride = 3 * hidden;
  Array context(at(options.offsets.back() * hidden), 0.0);
  for (std::size_t s = 0; s + 1 < options.offsets.size(); ++s)
    for (Dim head = 0; head < options.heads; ++head)
      for (Dim i = options.offsets[s]; i < options.offsets[s + 1]; ++i) {
        const Dim first = options.offsets[s], length = options.offsets[s + 1] - first;
        Array scores(at(length), 0.0);
        for (Dim j = 0; j < length; ++j)
          for (Dim d = 0; d < head_dim; ++d)
            scores[at(j)] += qkv[at(i * stride + head * head_dim + d)] *
                             qkv[at((first + j) * stride + hidden + head * head_dim + d)] /
                             std::sqrt(static_cast<double>(head_dim));
        Array p = softmax_rows(scores, length);
        if (options.dropout) p = each(p, multipliers(i, static_cast<std::uint32_t>(head), length), std::multiplies<>());
        for (Dim j = 0; j < length; ++j)
          for (Dim d = 0; d < head_dim; ++d)
            context[at(i * hidden + head * head_dim + d)] +=
                p[at(j)] * qkv[at((first + j) * stride + 2 * hidden + head * head_dim + d)];
      }
  return context;
}

}  // namespace bertrand::testing
