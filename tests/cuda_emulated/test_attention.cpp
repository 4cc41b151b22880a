// Attention in half types: on the tensor cores if they have a kernel for the width of the head, else as in f32.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "cuda_emulated/emulated_gpu.h"
#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/random.h"

using namespace bertrand;
using namespace bertrand::testing;

namespace {

struct Setting {
  std::vector<std::int32_t> lengths;
  int heads;
  Dim head_dim;
  bool dropout;
  double low = 0;  ///< added to the queries and taken from the keys: every score falls by low² · √head_dim and more
};

/// The context, then the gradient of q, k and v, of numbers that every half type holds.
std::vector<std::vector<double>> both_ways(const Setting& setting, DType dtype, DType drawn_in, Backend& b) {
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t length : setting.lengths) offsets.push_back(offsets.back() + length);
  const Dim tokens = offsets.back(), hidden = setting.heads * setting.head_dim;
  const auto noise = [&](const Shape& shape, std::uint64_t key) {
    Random random(key);
    std::vector<double> values(static_cast<std::size_t>(shape.elements()));
    for (double& v : values) v = 2 * random.uniform() - 1;
    if (shape[1] == 3 * hidden)
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Dim part = static_cast<Dim>(i) % (3 * hidden) / hidden;
        values[i] += part == 0 ? setting.low : part == 1 ? -setting.low : 0;
      }
    return ops::cast(ops::cast(ops::from_host(values, shape, b), drawn_in), dtype);
  };
  std::vector<std::int64_t> keys(static_cast<std::size_t>(tokens));
  std::iota(keys.begin(), keys.end(), 1000);
  Attention options{.offsets = ops::from_host(offsets, {static_cast<Dim>(offsets.size())}, b),
                    .heads = setting.heads,
                    .longest = *std::max_element(setting.lengths.begin(), setting.lengths.end())};
  if (setting.dropout) options.dropout = {.threshold = 13107, .key = 7, .row_keys = ops::from_host(keys, {tokens}, b)};
  const Tensor qkv = noise({tokens, 3 * hidden}, 1);
  const ops::Attended saved = ops::attention(qkv, options);
  const Tensor gradient = ops::attention_backward(qkv, options, saved, noise({tokens, hidden}, 2));
  std::vector<std::vector<double>> all{ops::to_host<double>(saved.context), ops::to_host<double>(saved.log_sum)};
  for (int part = 0; part < 3; ++part)
    all.push_back(ops::to_host<double>(ops::slice(gradient, 1, part * hidden, (part + 1) * hidden)));
  return all;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("attention takes more sequences than a grid has blocks along y and z") {
  Setting setting{std::vector<std::int32_t>(65'600, 0), 1, 16, false};
  setting.lengths.back() = 3;
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  const auto expected = both_ways(setting, DType::f64, DType::bf16, *cpu),
             got = both_ways(setting, DType::bf16, DType::bf16, *gpu);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(distance(got[i], expected[i]) <= 8e-3);
}

TEST_CASE("attention in bf16 and f16 stays within a few roundings of f64, for any lengths, heads and dropout") {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  const std::vector<Setting> settings{
      {{1}, 1, 16, false},          {{64}, 1, 64, false},   {{65, 3, 16}, 2, 32, false},      {{7, 130}, 2, 16, true},
      {{70, 128, 17}, 1, 64, true}, {{33}, 1, 128, true},   {{63, 127, 129, 0}, 2, 32, true}, {{195}, 1, 128, true},
      {{20, 40}, 2, 24, true},      {{9, 40}, 1, 256, true}};  // the last two on no tensor core
  for (const Setting& setting : settings)
    for (const DType dtype : {DType::bf16, DType::f16}) {
      const auto expected = both_ways(setting, DType::f64, dtype, *cpu), got = both_ways(setting, dtype, dtype, *gpu);
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (setting.lengths == std::vector<std::int32_t>{1} && (i == 2 || i == 3))
          continue;  // a lone token's scores have no slope
        CAPTURE(name_of(dtype));
        CAPTURE(setting.head_dim);
        CAPTURE(setting.lengths.size());
        CAPTURE(i);
        CHECK(distance(got[i], expected[i]) <= (i == 1 ? 1e-5 : dtype == DType::bf16 ? 8e-3 : 1e-3));
      }
      cuda::emulation::shuffle(5);
      CHECK(both_ways(setting, dtype, dtype, *gpu) == got);
      cuda::emulation::shuffle(0);
    }
}

TEST_CASE("a sequence's end gives no gradient, however small the scores before it are") {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  for (const std::vector<std::int32_t>& lengths :
       {std::vector<std::int32_t>{7, 50}, {150}}) {  // in one part and in two
    const Setting setting{lengths, 1, 64, false, 8};
    const auto expected = both_ways(setting, DType::f64, DType::bf16, *cpu),
               got = both_ways(setting, DType::bf16, DType::bf16, *gpu);
    CAPTURE(lengths.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(distance(got[i], expected[i]) <= 0.1);  // keys of eight times the size
  }
}

TEST_CASE("heads that do not fit into a block's shared memory are refused with their width and type") {
  const Setting setting{{3, 2}, 2, 256, false};
  const auto gpu = emulated_gpu();
  cuda::emulation::set_capability(8, 6);
  CHECK_THROWS_WITH_AS(both_ways(setting, DType::f64, DType::f64, *gpu),
                       "attention: expected heads that fit into a block's shared memory of this GPU, got 2 of 256 "
                       "columns in f64, which take 148032 bytes; hint: another --precision",
                       Error);
  CHECK_NOTHROW(both_ways(setting, DType::f32, DType::f32, *gpu));
  for (const auto& [major, minor] : {std::pair(8, 6), std::pair(8, 9), std::pair(12, 0)}) {
    cuda::emulation::set_capability(major, minor);  // docs/limits.md has the number of columns
    CHECK_NOTHROW(both_ways({{3, 2}, 2, 157, false}, DType::f64, DType::f64, *gpu));
    CHECK_THROWS_AS(both_ways({{3, 2}, 2, 158, false}, DType::f64, DType::f64, *gpu), Error);
  }
  cuda::emulation::set_capability(8, 0);
  CHECK_NOTHROW(both_ways(setting, DType::f64, DType::f64, *gpu));
  cuda::emulation::set_capability(9, 0);
}
