// Functions of one element and of two, held to the library's in f64, over the whole range of their types.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tensor/backends.h"
#include "tensor/ops.h"

using namespace bertrand;

namespace {

struct Function {
  const char* name;
  Unary op;
  double (*exact)(double);
  double (*slope)(double);
};
const Function kFunctions[] = {
    {"exp", Unary::exp, [](double v) { return std::exp(v); }, [](double v) { return std::exp(v); }},
    {"log", Unary::log, [](double v) { return std::log(v); }, [](double v) { return 1 / v; }},
    {"sqrt", Unary::sqrt, [](double v) { return std::sqrt(v); }, [](double v) { return 0.5 / std::sqrt(v); }},
    {"neg", Unary::neg, [](double v) { return -v; }, [](double) { return -1.0; }},
};

/// Every 997th float of either sign with the subnormal ones, the ends, and what is no number.
std::vector<float> floats() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x{0.0f,   -0.0f,  1.0f,     -1.0f,    kInfinity, -kInfinity, NAN,
                       88.72f, 88.73f, -103.97f, -103.98f, 200,       -200};
  for (std::uint32_t bits = 1; bits < 0x7f800000u; bits += 99'991)
    for (const std::uint32_t sign : {0u, 0x80000000u}) x.push_back(std::bit_cast<float>(bits | sign));
  for (int i = -20'000; i <= 20'000; ++i) x.push_back(static_cast<float>(i) * 0.01f);
  for (int i = 5'000; i <= 20'000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);  // where log crosses 0
  return x;
}

/// How many floats lie between the two, and whether one is special alone.
double units_apart(float got, double exact) {
  const auto expected = static_cast<float>(exact);
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected) ? 0 : 1e9;
  if (std::isinf(expected) || std::isinf(got)) return got == expected ? 0 : 1e9;
  const double unit = std::nextafter(std::abs(expected), std::numeric_limits<float>::infinity()) - std::abs(expected);
  return std::abs(static_cast<double>(got) - exact) / unit;
}

Tensor tensor_of(const std::vector<float>& x, Backend& backend) {
  return ops::from_host(x, {static_cast<Dim>(x.size())}, backend);
}

}  // namespace

TEST_CASE("functions of one element are the library's to one unit in the last place, over all floats") {
  const std::vector<float> x = floats();
  std::vector<std::vector<std::uint32_t>> bits;
  for (const std::string& kernels : runnable_cpu_kernels()) {
    const auto backend = open_cpu({.threads = 2, .kernels = kernels});
    const Tensor values = tensor_of(x, *backend), ones = ops::full(values.shape(), 1, DType::f32, *backend);
    std::vector<std::uint32_t> seen;
    for (const Function& f : kFunctions) {
      const auto y = ops::to_host<float>(ops::unary(f.op, values));
      const auto slopes = ops::to_host<float>(ops::unary_backward(f.op, values, ones));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = f.exact(x[i]), slope = f.slope(x[i]);
        if (units_apart(y[i], exact) > 1.2)
          FAIL_CHECK(f.name << "(" << x[i] << ") = " << y[i] << ", expected " << exact);
        if (units_apart(slopes[i], slope) > 1.6)
          FAIL_CHECK("slope of " << f.name << " at " << x[i] << " = " << slopes[i] << ", expected " << slope);
        seen.push_back(std::bit_cast<std::uint32_t>(y[i]));
      }
    }
    bits.push_back(std::move(seen));
    CHECK_MESSAGE(bits.back() == bits.front(), kernels);
  }
}

TEST_CASE("functions of one element are the library's in f64, and rounded once in the half types") {
  const auto backend = open_cpu({.threads = 1});
  for (const DType dtype : {DType::f64, DType::bf16, DType::f16}) {
    const Tensor x = ops::cast(tensor_of({0.25f, 3, 7.5f, -2, 0, 60}, *backend), dtype);
    const auto given = ops::to_host<double>(x);
    for (const Function& f : kFunctions) {
      const auto y = ops::to_host<double>(ops::unary(f.op, x));
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double expected = f.exact(given[i]),
                     allowed = dtype == DType::f64 ? 0 : std::abs(expected) * (dtype == DType::f16 ? 0x1p-11 : 0x1p-8);
        const bool beyond = dtype == DType::f16 && std::abs(expected) > 65504;
        CHECK_MESSAGE(((std::isnan(y[i]) && std::isnan(expected)) || y[i] == expected ||
                       (beyond ? std::isinf(y[i]) : std::abs(y[i] - expected) <= allowed)),
                      f.name << " of " << given[i] << " in " << name_of(dtype));
      }
    }
  }
}

TEST_CASE("sums, differences, products and quotients of two tensors are those of their elements") {
  const auto backend = open_cpu({.threads = 2});
  constexpr Dim kRows = 301, kColumns = 37;
  std::vector<float> a, row;
  for (Dim i = 0; i < kRows * kColumns; ++i) a.push_back(static_cast<float>(i % 401 - 200) * 1.25f);
  for (Dim i = 0; i < kColumns; ++i) row.push_back(static_cast<float>(i % 9) - 4);  // with zeros to divide by
  const Tensor x = ops::from_host(a, {kRows, kColumns}, *backend), y = ops::from_host(row, {kColumns}, *backend);
  const auto is = [](float got, float expected) {
    return got == expected || (std::isnan(got) && std::isnan(expected));
  };
  for (const auto op : {Binary::add, Binary::sub, Binary::mul, Binary::div}) {
    const auto exact = [op](float p, float q) {
      return op == Binary::add ? p + q : op == Binary::sub ? p - q : op == Binary::mul ? p * q : p / q;
    };
    const auto by_row = ops::to_host<float>(ops::binary(op, x, y)),
               by_itself = ops::to_host<float>(ops::binary(op, x, x));
    bool right = true;
    for (std::size_t i = 0; i < a.size(); ++i)
      right = right && is(by_row[i], exact(a[i], row[i % kColumns])) && is(by_itself[i], exact(a[i], a[i]));
    CHECK_MESSAGE(right, "operation number " << static_cast<int>(op));
  }
}
