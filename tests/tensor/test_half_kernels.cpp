// The half types: memory holds them, kernels compute in f32 and round once.
#include <doctest/doctest.h>

#include <cmath>

#include "support/worst.h"
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

/// The lines of x, which holds `from`, along `axis` from `begin` on, each `step`-th up to `end`, filled up to 16 with
/// zeros.
Tensor chain_of(const Tensor& x, const std::vector<float>& from, int axis, Dim begin, Dim end, Dim step) {
  const Shape shape = x.shape().with(axis, 16);
  const Dim columns = x.shape()[1];
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (Dim k = begin; k < end; k += step)
    for (Dim i = 0; i < x.shape()[1 - axis]; ++i) {
      const Dim at = (k - begin) / step;
      const auto index = [&](Dim width, Dim line) { return axis == 0 ? line * width + i : i * width + line; };
      values[static_cast<std::size_t>(index(shape[1], at))] = from[static_cast<std::size_t>(index(columns, k))];
    }
  return ops::from_host(values, shape, x.backend());
}

/// start + a · b before it is rounded: of f16 the product in f32, of bf16 what test_bf16_products.cpp says.
Tensor exact_product(const Tensor& a, const Tensor& b, const ops::MatmulOptions& transposes, const Tensor& start) {
  const Tensor sum = ops::copy(start);
  if (a.dtype() != DType::bf16) {
    ops::matmul(wide(a), wide(b),
                {.transpose_a = transposes.transpose_a, .transpose_b = transposes.transpose_b, .into = {sum, true}});
    return sum;
  }
  const int a_axis = transposes.transpose_a ? 0 : 1, b_axis = transposes.transpose_b ? 1 : 0;
  const auto of_a = ops::to_host<float>(a), of_b = ops::to_host<float>(b);
  Tensor c = sum;
  for (Dim block = 0; block < a.shape()[a_axis]; block += 32) {
    const Dim end = std::min(block + 32, a.shape()[a_axis]);
    const auto chain = [&](Dim parity) {
      return ops::matmul(chain_of(a, of_a, a_axis, block + parity, end, 2),
                         chain_of(b, of_b, b_axis, block + parity, end, 2),
                         {.transpose_a = transposes.transpose_a, .transpose_b = transposes.transpose_b});
    };
    c = ops::binary(Binary::add, c, ops::binary(Binary::add, chain(0), chain(1)));
  }
  return c;
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
  const Tensor wide = ops::cast(all, DType::f32);
  const auto cast = ops::to_host<float>(wide);
  // Products that end between two numbers, on the middle between them, beyond the largest and below the smallest.
  for (const double factor : {1.0, 1.00390625, 1.01171875, 0.75, 3.0, 1e-3, 300.0}) {
    std::vector<Half> rounded(65536), narrowed(65536);
    backend.download(ops::scale(all, factor), rounded.data());
    backend.download(ops::cast(ops::scale(wide, factor), dtype_of<Half>()), narrowed.data());
    int wrong = 0;
    for (std::uint32_t i = 0; i < 65536; ++i) {
      Half x;
      x.bits = static_cast<std::uint16_t>(i);
      const float exact = static_cast<float>(x);
      const Half expected(exact * static_cast<float>(factor));
      const bool nan = std::isnan(exact);
      const auto is_nan = [](auto y) { return std::isnan(static_cast<float>(y)); };
      wrong += nan ? !is_nan(widened[i]) || !is_nan(cast[i]) || !is_nan(rounded[i]) || !is_nan(narrowed[i])
                   : widened[i] != exact || cast[i] != exact || rounded[i].bits != expected.bits ||
                         narrowed[i].bits != expected.bits;
    }
    CHECK_MESSAGE(wrong == 0, name_of(dtype_of<Half>()) << " times " << factor << ": " << wrong << " of 65536");
  }
}

/// The largest difference, relative to the largest number.
double difference(const Tensor& x, const Tensor& exact) {
  const auto a = ops::to_host<float>(x), b = ops::to_host<float>(exact);
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = support::worst_of(most, std::abs(double{a[i]} - double{b[i]}));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return most / largest;
}

/// Sequences of 3, 247 and 51 tokens, two heads of 20.
struct AttentionCase {
  Attention options;
  Tensor qkv, dcontext;

  AttentionCase(DType dtype, Backend& backend)
      : options{.offsets = ops::from_host(std::vector<std::int32_t>{0, 3, 250, 301}, {4}, backend),
                .heads = 2,
                .longest = 247},
        qkv(noise({301, 120}, dtype, backend, 1)),
        dcontext(noise({301, 40}, dtype, backend, 2)) {}
};

}  // namespace

TEST_CASE("every number of the half types is widened exactly and rounded to the nearest, ties to even") {
  for (const std::string& kernels : runnable_cpu_kernels()) {
    const auto backend = open_cpu({.threads = 1, .kernels = kernels});
    check_loads_and_stores<BFloat16>(*backend);
    check_loads_and_stores<Float16>(*backend);
  }
}

TEST_CASE("a product of half types is computed in f32 and rounded once, at its end") {
  const auto backend = open_cpu({.threads = 2});
  struct Sizes {
    Dim rows, columns, depth;
  };
  for (const auto& [rows, columns, depth] : std::vector<Sizes>{{1, 1, 1},
                                                               {7, 33, 385},
                                                               {200, 53, 801},
                                                               {5, 4299, 3},
                                                               {2100, 1025, 2},
                                                               {1030, 33, 1601},
                                                               {33, 1030, 1601},
                                                               {70, 53, 384},
                                                               {70, 53, 768},
                                                               {70, 53, 1536}})
    for (const DType half : {DType::bf16, DType::f16}) {
      const Tensor of_a = noise({rows * depth}, half, *backend, 1), of_b = noise({columns * depth}, half, *backend, 2);
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true}) {
          const Tensor a = of_a.reshape(transpose_a ? Shape{depth, rows} : Shape{rows, depth});
          const Tensor b = of_b.reshape(transpose_b ? Shape{columns, depth} : Shape{depth, columns});
          const Tensor c = noise({rows, columns}, half, *backend, 3), zero = ops::scale(wide(c), 0);
          const ops::MatmulOptions transposes{.transpose_a = transpose_a, .transpose_b = transpose_b};
          const std::string what =  // clang 14: INFO captures no structured binding
              fmt::format("{} {} x {} x {}, transposed {} {}", name_of(half), rows, columns, depth, transpose_a,
                          transpose_b);
          INFO(what);
          CHECK(is_rounded(ops::matmul(a, b, transposes), exact_product(a, b, transposes, zero)));
          const Tensor sum = exact_product(a, b, transposes, wide(c));
          ops::matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b, .into = {c, true}});
          CHECK(is_rounded(c, sum));
        }
    }
}

TEST_CASE("bias and activation are applied before a product is rounded, and what the activation saw is kept") {
  const auto backend = open_cpu({.threads = 2});
  for (const DType half : {DType::bf16, DType::f16}) {
    const Tensor x = noise({70, 500}, half, *backend, 1), weight = noise({90, 500}, half, *backend, 2);
    const Tensor bias = noise({90}, half, *backend, 3);
    const Tensor ones = ops::full({70, 1}, 1, DType::f32, *backend);
    const Tensor biases = ops::matmul(ones, ops::from_host(ops::to_host<float>(bias), {1, 90}, *backend));
    const Tensor exact = exact_product(x, weight, {.transpose_b = true}, biases);
    for (const Unary activation : {Unary::identity, Unary::gelu, Unary::gelu_tanh, Unary::tanh, Unary::relu})
      for (const bool keep : {false, true}) {
        const ops::Activated got = ops::linear_activation(x, weight, bias, activation, keep);
        CHECK(is_rounded(got.y, activation == Unary::identity ? exact : ops::unary(activation, exact)));
        if (keep) CHECK(is_rounded(got.pre_activation, exact));
        // Memory that nobody wrote may hold the right numbers from before.
        if (keep) CHECK(got.pre_activation.same_memory(got.y) == (activation == Unary::identity));
        else CHECK_FALSE(got.pre_activation);
      }
  }
}

TEST_CASE("an activation is applied once, when the last part of the depth has been added") {
  const auto backend = open_cpu({.threads = 2});
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Dim rows : {70, 300}) {  // few and many: the kernel takes another way for each
      const Tensor x = noise({rows, 1700}, dtype, *backend, 1), weight = noise({20, 1700}, dtype, *backend, 2);
      const Tensor bias = noise({20}, dtype, *backend, 3);
      const auto expected = ops::to_host<double>(ops::unary(Unary::gelu, ops::linear(x, weight, bias)));
      for (const bool keep : {false, true})
        CHECK(ops::to_host<double>(ops::linear_activation(x, weight, bias, Unary::gelu, keep).y) == expected);
    }
}

TEST_CASE("attention on f16 is that on f32, rounded once, and keeps its sums in f32") {
  const auto backend = open_cpu({.threads = 2});
  const AttentionCase example(DType::f16, *backend);
  const auto& [options, qkv, dy] = example;
  const ops::Attended got = ops::attention(qkv, options), exact = ops::attention(wide(qkv), options);
  CHECK(is_rounded(got.context, exact.context));
  CHECK(got.log_sum.dtype() == DType::f32);
  CHECK(ops::to_host<float>(got.log_sum) == ops::to_host<float>(exact.log_sum));
  const ops::Attended same{wide(got.context), got.log_sum};
  CHECK(is_rounded(ops::attention_backward(qkv, options, got, dy),
                   ops::attention_backward(wide(qkv), options, same, wide(dy))));
}

TEST_CASE(
    "attention on bf16 has the same bits on every kernel set, and differs from f32 by the rounding of its factors") {
  std::vector<float> context, gradient;
  for (const std::string& kernels : runnable_cpu_kernels()) {
    INFO(kernels);
    const auto backend = open_cpu({.threads = 2, .kernels = kernels});
    const AttentionCase example(DType::bf16, *backend);
    const auto& [options, qkv, dy] = example;
    const ops::Attended got = ops::attention(qkv, options), exact = ops::attention(wide(qkv), options);
    const Tensor back = ops::attention_backward(qkv, options, got, dy);
    CHECK(got.log_sum.dtype() == DType::f32);
    CHECK(difference(got.context, exact.context) < 0x1p-8);
    CHECK(difference(back, ops::attention_backward(wide(qkv), options, exact, wide(dy))) < 0x1p-7);
    if (context.empty()) context = ops::to_host<float>(got.context), gradient = ops::to_host<float>(back);
    CHECK(ops::to_host<float>(got.context) == context);
    CHECK(ops::to_host<float>(back) == gradient);
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
