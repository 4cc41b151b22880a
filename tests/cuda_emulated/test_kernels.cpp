// Casts, functions, sums and searches: against the CPU's, for sizes that no row of the op table has.
#include "cuda_emulated/against_cpu.h"
#include "support/bad_indices.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::testing;

TEST_CASE("a cast between any two types equals the CPU's, bit for bit") {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  const std::vector<double> values{0,    -0.0,    1,       2.5,        3.5,        100,  65504, 65519,   65520,
                                   1e-7, 5.96e-8, 2.98e-8, 1.00390625, 1.01171875, -7.3, 1e30,  INFINITY};
  for (const DType from : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8})
    for (const DType to : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
      if (!is_floating(to) && is_floating(from)) continue;  // what does not fit is not defined
      const std::vector<double> fitting(values.begin(), is_floating(from) ? values.end() : values.begin() + 6);
      const std::vector<double> used = from == DType::u8 ? std::vector<double>{0, 1, 2, 100, 255} : fitting;
      const auto through = [&](Backend& b) {
        return ops::to_host<double>(
            ops::cast(ops::cast(ops::from_host(used, {static_cast<Dim>(used.size())}, b), from), to));
      };
      CHECK_MESSAGE(through(*gpu) == through(*cpu), name_of(from) << " to " << name_of(to));
    }
}

TEST_CASE("a number out of range is refused by op and index and value and range with the next download") {
  const auto gpu = emulated_gpu();
  check_bad_indices(*gpu);
  const Tensor table = ops::full({5, 3}, 1, DType::f32, *gpu), x = ops::full({1}, 4, DType::f32, *gpu);
  ops::gather(table, ops::from_host(std::vector<std::int32_t>{9}, {1}, *gpu));
  const auto later = gpu->download_later(x);
  float value = 0;
  CHECK_THROWS_WITH(later(&value), "gather: row number 0 is 9, expected 0 to 4");
  CHECK(value == 4);
  gpu->download_later(x)(&value);  // it is said once
}

TEST_CASE("functions of one element and of two equal the CPU's, at the ends of their range too") {
  const std::vector<double> values{0,   -0.0,  1,     -1,       0.3,       200, -200, 88,
                                   -88, 3e-39, 1e-45, INFINITY, -INFINITY, NAN, 7,    2};
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto x = [&](Backend& b) { return ops::cast(ops::from_host(values, {16}, b), dtype); };
    const auto check_each = [&](const auto& compute) {
      const auto got = ops::to_host<double>(compute(*gpu)), expected = ops::to_host<double>(compute(*cpu));
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK_MESSAGE((got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])) ||
                       std::abs(got[i] - expected[i]) <= 3e-7 * std::abs(expected[i])),
                      values[i] << ": " << got[i] << " and " << expected[i]);
    };
    for (const Unary op : {Unary::exp, Unary::log, Unary::sqrt, Unary::neg, Unary::identity}) {
      check_each([&](Backend& b) { return ops::unary(op, x(b)); });
      check_each([&](Backend& b) { return ops::unary_backward(op, x(b), ops::full({16}, 2, dtype, b)); });
    }
    for (const Binary op : {Binary::add, Binary::sub, Binary::mul, Binary::div})
      check_each([&](Backend& b) { return ops::binary(op, x(b).reshape({2, 8}), x(b).rows(7, 15)); });
  }
}

TEST_CASE("sums over many blocks equal the CPU's, in every type") {
  for (const DType dtype : kFloating) {
    CAPTURE(name_of(dtype));
    check_same(tolerance(dtype), [&](Backend& b) { return ops::sum(noise({20011}, dtype, b, 1)); });
    check_same(tolerance(dtype), [&](Backend& b) { return ops::norm(noise({20011}, dtype, b, 1)); });
    for (const Dim rows : {1, 31, 33, 256, 257, 700})
      check_same(tolerance(dtype), [&](Backend& b) { return ops::sum_to(noise({rows, 45}, dtype, b, 1), {45}); });
  }
}

TEST_CASE("the first number that is not finite is found, wherever it is") {
  const auto gpu = emulated_gpu();
  for (const DType dtype : kFloating) {
    CHECK(ops::first_non_finite(noise({1000}, dtype, *gpu, 1)) == -1);
    for (const std::size_t at : {0, 255, 256, 999}) {
      std::vector<float> values(1000, 1);
      values[at] = at % 2 == 0 ? NAN : -INFINITY;
      values[999] = INFINITY;
      CHECK(ops::first_non_finite(ops::cast(ops::from_host(values, {1000}, *gpu), dtype)) == static_cast<Dim>(at));
      CHECK_FALSE(std::isfinite(ops::item(ops::norm(ops::cast(ops::from_host(values, {1000}, *gpu), dtype)))));
    }
  }
  CHECK(ops::first_non_finite(ops::full({3}, 1, DType::i32, *gpu)) == -1);
}

TEST_CASE("the first of the greatest is found, for few columns and for many") {
  for (const Dim columns : {1, 2, 31, 300, 1000})
    check_same(0, [&](Backend& b) {
      std::vector<float> values;
      for (Dim i = 0; i < 5 * columns; ++i) values.push_back(static_cast<float>(i * 7 % 13));
      return ops::argmax(ops::from_host(values, {5, columns}, b));
    });
}
