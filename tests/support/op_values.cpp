#include "support/op_values.h"

#include <cmath>
#include <numeric>

#include "tensor/random.h"

namespace bertrand::testing {
namespace {

constexpr std::uint32_t kThreshold = 13107;  // of 65536
constexpr std::uint64_t kKey = 5;
constexpr std::int64_t kFirstRow = 70;

}  // namespace

Array uniform(Dim count, std::uint64_t key) {
  Random random(key);
  Array values(static_cast<std::size_t>(count));
  for (double& v : values) v = random.uniform();
  return values;
}

Tensor tensor(const Array& values, const Shape& shape, DType dtype, Backend& backend) {
  return ops::cast(ops::from_host(values, shape, backend), dtype);
}

Tensor constant(const Shape& shape, DType dtype, std::uint64_t key, Backend& backend) {
  return tensor(uniform(shape.elements(), key), shape, dtype, backend);
}

Inputs make_inputs(const OpCase& c, DType dtype, Backend& backend, const std::vector<bool>& wanted, DType drawn_in) {
  Inputs inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    Array values = uniform(c.inputs[i].elements(), 100 + i);
    for (double& v : values) {
      v = c.least + (c.most - c.least) * v;
      if (std::abs(v) < c.keep_away) v = c.keep_away;
    }
    inputs.emplace_back(ops::cast(tensor(values, c.inputs[i], drawn_in, backend), dtype), wanted.empty() || wanted[i]);
  }
  return inputs;
}

std::vector<std::int32_t> some_rows(Dim count, Dim rows) {
  std::vector<std::int32_t> picked;
  for (Dim i = 0; i < count; ++i) picked.push_back(static_cast<std::int32_t>(i * 3 % rows));
  return picked;
}

std::vector<std::int32_t> labels(Dim rows, Dim classes, bool ignore_some) {
  std::vector<std::int32_t> values;
  for (Dim i = 0; i < rows; ++i)
    values.push_back(ignore_some && i % 4 == 1 ? -1 : static_cast<std::int32_t>(i * 5 % classes));
  return values;
}

Tensor indices(const std::vector<std::int32_t>& values, Backend& backend) {
  return ops::from_host(values, {static_cast<Dim>(values.size())}, backend);
}

Dropout some_dropout(Dim rows, Backend& backend) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(rows));
  std::iota(keys.begin(), keys.end(), kFirstRow);
  return {.threshold = kThreshold, .key = kKey, .row_keys = ops::from_host(keys, {rows}, backend)};
}

Array multipliers(Dim row, std::uint32_t plane, Dim columns) {
  Array values(static_cast<std::size_t>(columns));
  for (Dim c = 0; c < columns; ++c) {
    const auto counter = static_cast<std::uint32_t>(c / 128 * 16 + c % 16),
               half = static_cast<std::uint32_t>(c % 128 / 16);
    const auto words = philox4x32({static_cast<std::uint32_t>(kFirstRow + row), 0, plane, counter}, kKey);
    const std::uint32_t bits = words[half / 2] >> (half % 2 * 16) & 0xffff;
    values[static_cast<std::size_t>(c)] = bits < kThreshold ? 0 : 65536.0 / (65536.0 - kThreshold);
  }
  return values;
}

Array multipliers(const Shape& shape) {
  Array all;
  for (Dim r = 0; r < shape.rows(); ++r) {
    const Array row = multipliers(r, 0, shape.columns());
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

Variable masked(const Variable& x) {
  return mul(x, Variable(tensor(multipliers(x.shape()), x.shape(), x.value().dtype(), x.value().backend())));
}

}  // namespace bertrand::testing
