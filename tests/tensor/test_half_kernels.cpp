// The half types: memory holds them, kernels compute in f32 and round once.
#include <doctest/doctest.h>

#include <cmath>

#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

Tensor noise(const Shape& shape, DType dtype, Backend& backend, std::uint64_t key) {
  Random random(key);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (float& v : values) v = static_cast<float>(2 * random.uniform() - 1);
  return ops::cast(ops::from_host(values, shape, backend), dtype);
}

Tensor wide(const Tensor& x) { return x ? ops::cast(x, DType::f32) : x; }

/// The same for a factor of a product whose depth is `axis`, in the order in which it is multiplied: neighbours of bf16
/// have changed places (test_bf16_products.cpp).
Tensor wide_factor(const Tensor& x, int axis) {
  if (x.dtype() != DType::bf16) return wide(x);
  const Dim rows = x.shape()[0], columns = x.shape()[1], depth = x.shape()[axis];
  const Shape shape = x.shape().with(axis, depth + depth % 2);
  const auto from = ops::to_host<float>(x);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (Dim i = 0; i < rows; ++i)
    for (Dim j = 0; j < columns; ++j)
      values[static_cast<std::size_t>(axis == 0 ? (i ^ 1) * columns + j : i * shape[1] + (j ^ 1))] =
          from[static_cast<std::size_t>(i * columns + j)];
  return ops::from_host(values, shape, x.backend());
}

/// Whether the half tensor is the f32 one rounded, bit for bit.
bool is_rounded(const Tensor& half, const Tensor& exact) {
  return ops::to_host<float>(half) == ops::to_host<float>(ops::cast(exact, half.dtype()));
}

/// Every bit pattern of a half type.
template <class Half>
Tensor every_number(Backend& backend) {
  const Tensor all({65536}, dtype_of<Half>(), backend);
  std::vector<Half> values(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) values[i].bits = static_cast<std::uint16_t>(i);
  backend.upload(values.data(), all);
  return all;
}

template <class Half>
void check_loads_and_stores(Backend& backend) {
  const Tensor all = every_number<Half>(backend);
  const Tensor sums = ops::full(all.shape(), 0, DType::f32, backend);
  ops::add_into(all, sums);
  const auto widened = ops::to_host<float>(sums);
  // Products that end between two numbers, on the middle between them, beyond the largest and below the smallest.
  for (const double factor : {1.0, 1.00390625, 1.01171875, 0.75, 3.0, 1e-3, 300.0}) {
    std::vector<Half> rounded(65536);
    backend.download(ops::scale(all, factor), rounded.data());
    int wrong = 0;
    for (std::uint32_t i = 0; i < 65536; ++i) {
      Half x;
      x.bits = static_cast<std::uint16_t>(i);
      const float exact = static_cast<float>(x);
      const Half expected(exact * static_cast<float>(factor));
      const bool nan = std::isnan(exact);
      wrong += nan ? !std::isnan(widened[i]) || !std::isnan(static_cast<float>(rounded[i]))
                   : widened[i] != exact || rounded[i].bits != expected.bits;
    }
    CHECK_MESSAGE(wrong == 0, name_of(dtype_of<Half>()) << " times " << factor << ": " << wrong << " of 65536");
  }
}

}  // namespace

TEST_CASE("every number of the half types is widened exactly and rounded to the nearest, ties to even") {
  for (const std::string& kernels : runnable_cpu_kernels()) {
    const auto backend = open_cpu({.threads = 1, .kernels = kernels});
    check_loads_and_stores<BFloat16>(*backend);
    check_loads_and_stores<Float16>(*backend);
  }
}

TEST_CASE("a product of half types is that of f32, rounded once at its end") {
  const auto backend = open_cpu({.threads = 2});
  struct Sizes {
    Dim rows, columns, depth;
  };
  for (const auto& [rows, columns, depth] :
       std::vector<Sizes>{{1, 1, 1}, {7, 33, 385}, {200, 53, 801}, {5, 4099, 3}, {2100, 1025, 2}})
    for (const DType half : {DType::bf16, DType::f16})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true}) {
          const Tensor a = noise(transpose_a ? Shape{depth, rows} : Shape{rows, depth}, half, *backend, 1);
          const Tensor b = noise(transpose_b ? Shape{columns, depth} : Shape{depth, columns}, half, *backend, 2);
          const Tensor left = wide_factor(a, transpose_a ? 0 : 1), right = wide_factor(b, transpose_b ? 1 : 0);
          const Tensor c = noise({rows, columns}, half, *backend, 3), exact = wide(c);
          INFO(fmt::format("{} {} x {} x {}, transposed {} {}", name_of(half), rows, columns, depth, transpose_a,
                           transpose_b));
          CHECK(is_rounded(ops::matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b}),
                           ops::matmul(left, right, {.transpose_a = transpose_a, .transpose_b = transpose_b})));
          ops::matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b, .into = {c, true}});
          ops::matmul(left, right, {.transpose_a = transpose_a, .transpose_b = transpose_b, .into = {exact, true}});
          CHECK(is_rounded(c, exact));
        }
}

TEST_CASE("bias and activation are applied before a product is rounded, and what the activation saw is kept") {
  const auto backend = open_cpu({.threads = 2});
  for (const DType half : {DType::bf16, DType::f16}) {
    const Tensor x = noise({70, 500}, half, *backend, 1), weight = noise({90, 500}, half, *backend, 2);
    const Tensor bias = noise({90}, half, *backend, 3);
    for (const Unary activation : {Unary::identity, Unary::gelu, Unary::gelu_tanh, Unary::tanh, Unary::relu})
      for (const bool keep : {false, true}) {
        const ops::Activated got = ops::linear_activation(x, weight, bias, activation, keep);
        const ops::Activated exact =
            ops::linear_activation(wide_factor(x, 1), wide_factor(weight, 1), wide(bias), activation, keep);
        CHECK(is_rounded(got.y, exact.y));
        if (keep && activation != Unary::identity) CHECK(is_rounded(got.pre_activation, exact.pre_activation));
      }
  }
}

TEST_CASE("attention on half types is that on f32, rounded once, and keeps its sums in f32") {
  const auto backend = open_cpu({.threads = 2});
  constexpr Dim kTokens = 301, kHidden = 40;
  const Attention options{
      .offsets = ops::from_host(std::vector<std::int32_t>{0, 3, 250, 301}, {4}, *backend), .heads = 2, .longest = 247};
  for (const DType half : {DType::bf16, DType::f16}) {
    const Tensor qkv = noise({kTokens, 3 * kHidden}, half, *backend, 1),
                 dy = noise({kTokens, kHidden}, half, *backend, 2);
    const ops::Attended got = ops::attention(qkv, options), exact = ops::attention(wide(qkv), options);
    CHECK(is_rounded(got.context, exact.context));
    CHECK(got.log_sum.dtype() == DType::f32);
    CHECK(ops::to_host<float>(got.log_sum) == ops::to_host<float>(exact.log_sum));
    const ops::Attended same{wide(got.context), got.log_sum};
    CHECK(is_rounded(ops::attention_backward(qkv, options, got, dy),
                     ops::attention_backward(wide(qkv), options, same, wide(dy))));
  }
}

TEST_CASE("long sums of half types do not stop growing where their own digits end") {
  const auto backend = open_cpu({.threads = 2});
  constexpr Dim kRows = 5000;  // bf16 holds every whole number up to 256, f16 up to 2048
  for (const DType half : {DType::bf16, DType::f16}) {
    const Tensor ones = ops::full({kRows, 70}, 1, half, *backend);
    const float rows = ops::to_host<float>(ops::full({1}, kRows, half, *backend))[0];
    const float half_rows = ops::to_host<float>(ops::full({1}, kRows / 2, half, *backend))[0];
    for (const float v : ops::to_host<float>(ops::sum_to(ones, {70}))) CHECK(v == rows);
    std::vector<std::int32_t> types(kRows);
    for (std::size_t i = 0; i < types.size(); ++i) types[i] = static_cast<std::int32_t>(i % 2);
    const Tensor table = ops::scatter_add(ones, ops::from_host(types, {kRows}, *backend), {2, 70});
    for (const float v : ops::to_host<float>(table)) CHECK(v == half_rows);
    CHECK(ops::item(ops::sum(ones)) == kRows * 70.0);
    CHECK(ops::item(ops::norm(ones)) == doctest::Approx(std::sqrt(kRows * 70.0)).epsilon(1e-12));
  }
}

TEST_CASE("losses, statistics and sums of half types are f32") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = ops::full({4, 30}, 3, DType::f16, *backend), row = ops::full({30}, 1, DType::f16, *backend);
  const ops::Normalized normalized = ops::layer_norm(x, {}, {.gamma = row, .beta = row});
  CHECK(normalized.y.dtype() == DType::f16);
  CHECK(normalized.statistics.dtype() == DType::f32);
  const ops::CrossEntropy entropy =
      ops::cross_entropy(x, ops::from_host(std::vector<std::int32_t>{0, 1, 2, 3}, {4}, *backend), 1e-6);
  CHECK(entropy.log_sum.dtype() == DType::f32);
  CHECK(ops::item(entropy.loss) == doctest::Approx(4e6 * std::log(30.0)).epsilon(1e-6));  // f16 ends at 65504
  CHECK(ops::item(ops::sum(ops::full({3}, 60000, DType::f16, *backend))) == 180000);
}
