// Kernels against plain loops, and the promise that their bits depend on nothing but their inputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>

#include "support/worst.h"
#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

Tensor noise(const Shape& shape, DType dtype, Backend& backend, std::uint64_t key, double scale = 1) {
  Random random(key);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (double& v : values) v = scale * (2 * random.uniform() - 1);
  return ops::cast(ops::from_host(values, shape, backend), dtype);
}

/// The bits of a result under each number of threads and each kernel set that this machine has.
template <class Compute>
void check_same_bits(const Compute& compute) {
  std::vector<std::vector<double>> results;
  for (const std::string& kernels : runnable_cpu_kernels())
    for (const int threads : {1, 2, 3, 8}) {
      const auto backend = open_cpu({.threads = threads, .kernels = kernels});
      results.push_back(ops::to_host<double>(compute(*backend)));
      CHECK_MESSAGE(results.back() == results.front(), kernels << ", " << threads << " threads");
    }
}

}  // namespace

TEST_CASE("a matrix product equals the sums it stands for, whatever is transposed and however it fits the tiles") {
  const auto backend = open_cpu({.threads = 2});
  struct Sizes {
    Dim rows, columns, depth;
  };
  const std::vector<Sizes> sizes{{1, 1, 1},     {1, 17, 5},     {6, 16, 384}, {7, 33, 385},
                                 {37, 53, 801}, {100, 3, 1000}, {5, 4299, 3}, {4300, 5, 2}};
  for (const auto& [rows, columns, depth] : sizes)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const DType dtype : {DType::f32, DType::f64}) {
          const Tensor a = noise(transpose_a ? Shape{depth, rows} : Shape{rows, depth}, dtype, *backend, 1);
          const Tensor b = noise(transpose_b ? Shape{columns, depth} : Shape{depth, columns}, dtype, *backend, 2);
          const auto x = ops::to_host<double>(a), y = ops::to_host<double>(b);
          const auto got =
              ops::to_host<double>(ops::matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b}));
          double worst = 0;
          for (Dim i = 0; i < rows; ++i)
            for (Dim j = 0; j < columns; ++j) {
              double sum = 0;
              for (Dim k = 0; k < depth; ++k)
                sum += x[static_cast<std::size_t>(transpose_a ? k * rows + i : i * depth + k)] *
                       y[static_cast<std::size_t>(transpose_b ? j * depth + k : k * columns + j)];
              worst = support::worst_of(worst, std::abs(sum - got[static_cast<std::size_t>(i * columns + j)]));
            }
          const std::string what =  // clang 14: INFO captures no structured binding
              fmt::format("{} x {} x {}, transposed {} {}", rows, columns, depth, transpose_a, transpose_b);
          INFO(what);
          CHECK(worst <= (dtype == DType::f64 ? 1e-12 : 1e-4));
        }
}

TEST_CASE("each of thousands of outputs of a layer has its own bias, and each of thousands of rows is computed") {
  const auto backend = open_cpu({.threads = 2});
  for (const auto& [rows, outputs] : {std::pair<Dim, Dim>{260, 4300}, {4300, 260}, {3, 4300}})
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      std::vector<double> bias(static_cast<std::size_t>(outputs));
      for (std::size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<double>(j % 251);  // which bf16 holds
      const auto y = ops::to_host<double>(ops::linear(ops::full({rows, 2}, 1, dtype, *backend),
                                                      ops::full({outputs, 2}, 0, dtype, *backend),
                                                      ops::cast(ops::from_host(bias, {outputs}, *backend), dtype)));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < y.size(); ++i) wrong += y[i] != bias[i % bias.size()];
      const std::string what = fmt::format("{} rows, {} outputs, {}", rows, outputs, name_of(dtype));
      INFO(what);
      CHECK(wrong == 0);
    }
}

TEST_CASE("a product can be added to what is there") {
  const auto backend = open_cpu({.threads = 1});
  for (const auto& [rows, transposed] : {std::pair<Dim, bool>{9, false}, {9, true}, {4, true}}) {  // three ways
    const Tensor a = noise({rows, 1700}, DType::f64, *backend, 1), c = noise({rows, 27}, DType::f64, *backend, 3);
    const Tensor b = noise(transposed ? Shape{27, 1700} : Shape{1700, 27}, DType::f64, *backend, 2);
    const auto product = ops::to_host<double>(ops::matmul(a, b, {.transpose_b = transposed})),
               before = ops::to_host<double>(c);
    const auto after = ops::to_host<double>(ops::matmul(a, b, {.transpose_b = transposed, .into = {c, true}}));
    for (std::size_t i = 0; i < after.size(); ++i)
      CHECK(after[i] == doctest::Approx(before[i] + product[i]).epsilon(1e-12));
  }
}

TEST_CASE("a product has the same bits for any threads and kernel set") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (const bool transposed : {false, true})  // as the weights of a layer are
      for (const bool onto : {false, true})
        check_same_bits([&](Backend& backend) {
          const Tensor c = noise({103, 110}, dtype, backend, 3);
          return ops::matmul(noise({103, 900}, dtype, backend, 1),
                             noise(transposed ? Shape{110, 900} : Shape{900, 110}, dtype, backend, 2),
                             {.transpose_b = transposed, .into = {c, onto}});
        });
    for (const Dim rows : {103, 7})
      check_same_bits([&](Backend& backend) {
        return ops::linear(noise({rows, 900}, dtype, backend, 1), noise({110, 900}, dtype, backend, 2),
                           noise({110}, dtype, backend, 3));
      });
  }
}

TEST_CASE("a row of a product has the same bits alone and in company") {
  const auto backend = open_cpu({.threads = 2});
  for (const bool transposed : {false, true}) {
    const Tensor a = noise({261, 900}, DType::f32, *backend, 1);
    const Tensor b = noise(transposed ? Shape{77, 900} : Shape{900, 77}, DType::f32, *backend, 2);
    const auto rows = [&](Dim first, Dim last) {
      return ops::to_host<float>(ops::matmul(a.rows(first, last), b, {.transpose_b = transposed}));
    };
    const auto whole = rows(0, 261);
    for (const auto& [first, last] : {std::pair<Dim, Dim>{0, 1}, {5, 14}, {6, 14}, {60, 97}, {69, 261}, {1, 193}}) {
      const auto few = rows(first, last);
      CHECK(std::equal(few.begin(), few.end(), whole.begin() + first * 77));
    }
  }
}

TEST_CASE("sums, norms and column sums have the same bits for any threads and kernel set") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    check_same_bits([dtype](Backend& backend) { return ops::sum(noise({100003}, dtype, backend, 1)); });
    check_same_bits([dtype](Backend& backend) { return ops::norm(noise({100003}, dtype, backend, 1)); });
    check_same_bits([dtype](Backend& backend) { return ops::sum_to(noise({1000, 1111}, dtype, backend, 1), {1111}); });
  }
}

TEST_CASE("the first element that is not finite is found, whatever the type and the threads") {
  for (const int threads : {1, 3}) {
    const auto backend = open_cpu({.threads = threads});
    constexpr Dim kCount = 300'000;
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      const Tensor x = ops::full({kCount}, 1, dtype, *backend);
      CHECK(ops::first_non_finite(x) == -1);
      for (const Dim at :
           {kCount - 1, Dim{200'003}, Dim{65'536}, Dim{65'535}, Dim{0}}) {  // the earlier ones lie after it
        ops::fill(x.window(at, {1}), at % 2 == 0 ? NAN : -INFINITY);
        CHECK(ops::first_non_finite(x) == at);
      }
    }
    CHECK(ops::first_non_finite(ops::full({5}, 1, DType::i32, *backend)) == -1);
    CHECK(ops::first_non_finite(ops::full({2}, 1e300, DType::f64, *backend)) == -1);
    CHECK(ops::first_non_finite(Tensor({0}, DType::f32, *backend)) == -1);
  }
}

TEST_CASE("the polynomials stay close to the library's functions") {
  const auto backend = open_cpu({.threads = 1});
  std::vector<float> x;
  for (int i = -12000; i <= 12000; ++i) x.push_back(static_cast<float>(i) * 1e-3f);
  const Tensor values = ops::from_host(x, {static_cast<Dim>(x.size())}, *backend),
               ones = ops::full(values.shape(), 1, DType::f32, *backend);
  const auto of = [&](Unary f) { return ops::to_host<float>(ops::unary(f, values)); };
  const auto slope_of = [&](Unary f) { return ops::to_host<float>(ops::unary_backward(f, values, ones)); };
  const auto tanh_x = of(Unary::tanh), erf_gelu = of(Unary::gelu), tanh_gelu = of(Unary::gelu_tanh);
  const auto erf_slope = slope_of(Unary::gelu), tanh_slope = slope_of(Unary::gelu_tanh);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], cumulative = 0.5 * std::erfc(-v / std::sqrt(2.0)),
                 density = std::exp(-v * v / 2) / std::sqrt(2 * 3.14159265358979323846);
    CHECK(std::abs(tanh_x[i] - std::tanh(v)) <= 4e-7);
    CHECK(std::abs(erf_gelu[i] - v * cumulative) <= 1e-6 * std::max(1.0, std::abs(v)));
    CHECK(std::abs(erf_slope[i] - (cumulative + v * density)) <= 2e-6);
    const double c = std::sqrt(2 / 3.14159265358979323846), t = std::tanh(c * (v + 0.044715 * v * v * v));
    CHECK(std::abs(tanh_gelu[i] - 0.5 * v * (1 + t)) <= 1e-6 * std::max(1.0, std::abs(v)));
    CHECK(std::abs(tanh_slope[i] - (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * c * (1 + 3 * 0.044715 * v * v))) <= 6e-5);
  }
}

TEST_CASE("both forms of GELU have the slopes 1 and 0 far from zero") {
  const auto backend = open_cpu({.threads = 1});
  std::vector<float> x;
  for (float v = 6; v < 1e5f; v *= 1.1f) x.insert(x.end(), {v, -v});
  const Tensor values = ops::from_host(x, {static_cast<Dim>(x.size())}, *backend),
               ones = ops::full(values.shape(), 1, DType::f32, *backend);
  for (const Unary gelu : {Unary::gelu, Unary::gelu_tanh}) {
    const auto slopes = ops::to_host<float>(ops::unary_backward(gelu, values, ones));
    for (std::size_t i = 0; i < x.size(); ++i) CHECK_MESSAGE(std::abs(slopes[i] - (x[i] > 0)) <= 1e-6, x[i]);
  }
}

TEST_CASE("softmax stays finite and sums to one for scores of any size, and NaN is not hidden") {
  const auto backend = open_cpu({.threads = 1});
  const std::vector<float> scores{1e30f, 1e30f, -1e30f, 80, 90, 100, -1e38f, -1e38f, -1e38f, 0, 1, NAN};
  const auto y = ops::to_host<float>(ops::softmax(ops::from_host(scores, {4, 3}, *backend)));
  for (int row = 0; row < 3; ++row)
    CHECK(y[static_cast<std::size_t>(3 * row)] + y[static_cast<std::size_t>(3 * row + 1)] +
              y[static_cast<std::size_t>(3 * row + 2)] ==
          doctest::Approx(1.0));
  CHECK(std::isnan(y[9] + y[10] + y[11]));
}

TEST_CASE("attention counts nothing but its keys, however far below zero their scores are") {
  const auto backend = open_cpu({.threads = 1});
  const std::vector<double> rows{60, 0, -60, 0, 1, 0, 60, 0, -60, 0, 2, 0, 60, 0, -60, 0, 3, 0};  // scores −3600/√2
  const Attention options{ops::from_host(std::vector<std::int32_t>{0, 3}, {2}, *backend), 1, 3};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor qkv = ops::cast(ops::from_host(rows, {3, 6}, *backend), dtype);
    for (const double c : ops::to_host<double>(ops::slice(ops::attention(qkv, options).context, 1, 0, 1)))
      CHECK(c == doctest::Approx(2));
  }
}

TEST_CASE("dropout keeps the right share, scales it, and names each element by row key and column alone") {
  const auto backend = open_cpu({.threads = 2});
  constexpr Dim kRows = 300, kColumns = 333;
  std::vector<std::int64_t> keys(kRows);
  std::iota(keys.begin(), keys.end(), 1000);
  const Tensor ones = ops::full({kRows, kColumns}, 1, DType::f32, *backend);
  const Dropout dropout{.threshold = 6554, .key = 99, .row_keys = ops::from_host(keys, {kRows}, *backend)};
  const auto y = ops::to_host<float>(ops::dropout(ones, dropout));
  double kept = 0;
  for (const float v : y) {
    CHECK((v == 0 || v == static_cast<float>(dropout.scale())));
    kept += v != 0;
  }
  CHECK(kept / static_cast<double>(y.size()) == doctest::Approx(0.9).epsilon(0.005));

  const Dropout one_row{.threshold = 6554, .key = 99, .row_keys = dropout.row_keys.rows(17, 18)};
  const auto alone = ops::to_host<float>(ops::dropout(ones.rows(0, 1), one_row));
  CHECK(std::equal(alone.begin(), alone.end(), y.begin() + 17 * kColumns));
  check_same_bits([&](Backend& b) {
    return ops::dropout(ops::full({kRows, kColumns}, 1, DType::f32, b),
                        {.threshold = 6554, .key = 99, .row_keys = ops::from_host(keys, {kRows}, b)});
  });
}

TEST_CASE("dropout's bits are Philox's, and an element is kept whose bits are not below the threshold") {
  const auto backend = open_cpu({.threads = 1});
  const std::uint64_t key = 0x0123456789abcdef;
  const std::int64_t row_key = 0x7654321089abcdef;
  std::vector<std::uint32_t> bits;
  for (std::uint32_t column = 0; column < 256; ++column) {
    const auto words = philox4x32({static_cast<std::uint32_t>(row_key), static_cast<std::uint32_t>(row_key >> 32), 0,
                                   column / 128 * 16 + column % 16},
                                  key);
    const std::uint32_t half = column % 128 / 16;
    bits.push_back(words[half / 2] >> (half % 2 * 16) & 0xffff);
  }
  for (const std::uint32_t threshold :
       {std::uint32_t{20000}, bits[3], bits[200], bits[130] + 1, std::uint32_t{1}, std::uint32_t{65535}}) {
    const Dropout dropout{.threshold = threshold,
                          .key = key,
                          .row_keys = ops::from_host(std::vector<std::int64_t>{row_key}, {1}, *backend)};
    const auto y = ops::to_host<float>(ops::dropout(ops::full({1, 256}, 1, DType::f32, *backend), dropout));
    for (std::size_t column = 0; column < 256; ++column) CHECK((y[column] != 0) == (bits[column] >= threshold));
  }
}

TEST_CASE("no rows are summed to zeros, and nothing is gathered from them") {
  const auto backend = open_cpu({.threads = 2});
  { const Tensor garbage = ops::full({64}, NAN, DType::f32, *backend); }  // what freed memory may hold
  CHECK(ops::to_host<float>(ops::sum_to(Tensor({0, 5}, DType::f32, *backend), {5})) == std::vector<float>(5, 0.0f));
  CHECK(ops::item(ops::sum(Tensor({0}, DType::f32, *backend))) == 0);
  CHECK(ops::item(ops::norm(Tensor({0}, DType::f32, *backend))) == 0);
  CHECK(ops::gather(ops::full({3, 5}, 1, DType::f32, *backend), Tensor({0}, DType::i32, *backend)).shape() ==
        Shape{0, 5});
}

TEST_CASE("a product of no depth is zero, and so are gradients from no rows") {
  const auto backend = open_cpu({.threads = 2});
  const auto of = [&](const Shape& shape) { return Tensor(shape, DType::f32, *backend); };
  {
    std::vector<Tensor> garbage;  // what freed memory may hold
    for (int i = 0; i < 40; ++i) garbage.push_back(ops::full({16}, NAN, DType::f32, *backend));
  }
  CHECK(ops::to_host<float>(ops::matmul(of({2, 0}), of({0, 3}))) == std::vector<float>(6, 0.0f));
  const Tensor fives = ops::full({2, 3}, 5, DType::f32, *backend);
  ops::matmul(of({2, 0}), of({0, 3}), {.into = {fives, true}});
  CHECK(ops::to_host<float>(fives) == std::vector<float>(6, 5.0f));
  CHECK(ops::matmul(of({5, 0}), of({5, 2}), {.transpose_a = true}).shape() == Shape{0, 2});
  CHECK(ops::slice(of({0, 5}), 1, 2, 4).shape() == Shape{0, 2});
  CHECK(ops::slice_backward(of({0, 2}), {0, 5}, 1, 2).shape() == Shape{0, 5});
  const Tensor gamma = ops::full({8}, 1, DType::f32, *backend);
  const ops::NormGradients gradients =
      ops::layer_norm_backward({of({0, 8}), of({0, 8}), of({0, 2})}, {.gamma = gamma, .beta = gamma}, of({0, 8}));
  CHECK(ops::to_host<float>(gradients.dgamma) == std::vector<float>(8, 0.0f));
  CHECK(ops::to_host<float>(gradients.dbeta) == std::vector<float>(8, 0.0f));
}

TEST_CASE("rows that go to the same place are added in their order") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor rows = ops::from_host(std::vector<std::int32_t>{2, 0, 2, 2}, {4}, *backend);
  const auto summed = [&](const std::vector<float>& dy) {
    return ops::to_host<float>(ops::scatter_add(ops::from_host(dy, {4, 1}, *backend), rows, {4, 1}));
  };
  CHECK(summed({1, 5, 1e8f, -1e8f}) == std::vector<float>{5, 0, 0, 0});  // f32 has no 1e8 + 1
  CHECK(summed({1e8f, 5, -1e8f, 1}) == std::vector<float>{5, 0, 1, 0});
}

TEST_CASE("a backend has so many threads as asked for, or one for each core") {
  CHECK(open_cpu({.threads = 1})->description().ends_with(", 1 thread"));
  CHECK(open_cpu({.threads = 3})->description().ends_with(", 3 threads"));
  CHECK(open_cpu()->description() == open_cpu({.threads = available_cores()})->description());
}

TEST_CASE("the greatest of a row is found wherever it stands, and the first of equals") {
  const auto backend = open_cpu({.threads = 2});
  for (const Dim columns : {1, 2, 17, 100}) {
    constexpr Dim kRows = 300;
    std::vector<float> x(static_cast<std::size_t>(kRows * columns), -5);
    std::vector<std::int32_t> expected;
    for (Dim r = 0; r < kRows; ++r) {
      expected.push_back(static_cast<std::int32_t>(r * 7 % columns));
      for (Dim c = expected.back(); c < columns; c += 3) x[static_cast<std::size_t>(r * columns + c)] = -1;
    }
    CHECK(ops::to_host<std::int32_t>(ops::argmax(ops::from_host(x, {kRows, columns}, *backend))) == expected);
  }
}

TEST_CASE("shape errors name the op and both shapes") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor a = ops::full({2, 3}, 0, DType::f32, *backend), b = ops::full({2, 3}, 0, DType::f32, *backend);
  CHECK_THROWS_WITH_AS(
      ops::matmul(a, b),
      "matmul: inner dimensions differ, a is [2, 3] and b is [2, 3]: the last axis of the first must equal the "
      "first axis of the second",
      Error);
  CHECK_THROWS_WITH_AS(ops::binary(Binary::add, a, ops::full({2}, 0, DType::f32, *backend)),
                       "add: b must have a's shape or its trailing dimensions, a is f32 [2, 3] and b is f32 [2]",
                       Error);
  CHECK_THROWS_AS(ops::binary(Binary::add, a, Tensor{}), Error);
  CHECK_THROWS_WITH_AS(ops::slice_backward(a, {2, 4}, 1, 2),
                       "slice_backward: expected the gradient of a slice of [2, 4] along axis 1, got [2, 3] from 2 on",
                       Error);
  CHECK_THROWS_WITH_AS(ops::matmul(a, ops::full({3, 2}, 0, DType::f32, *backend), {.into = {.accumulate = true}}),
                       "matmul: expected a tensor to add to, got none", Error);
  CHECK_THROWS_AS(ops::point_loss_backward(PointLoss::squared_error, a, ops::full({2}, 0, DType::f32, *backend), 1, a),
                  Error);
}

TEST_CASE("what belongs to a layer has the type of its input") {
  const auto backend = open_cpu({.threads = 1});
  const auto of = [&](const Shape& shape, DType dtype) { return ops::full(shape, 1, dtype, *backend); };
  const Tensor x = of({2, 3}, DType::f64), weight = of({4, 3}, DType::f64);
  CHECK_THROWS_WITH_AS(
      ops::linear(x, weight, of({4}, DType::f32)),
      "linear: the weight is f64 [4, 3] [out, in] but the bias is f32 [4]: expected [out] of the same type", Error);
  CHECK_THROWS_WITH_AS(
      ops::layer_norm(x, {}, {.gamma = of({3}, DType::f32), .beta = of({3}, DType::f64), .epsilon = 1e-12}),
      "layer_norm: x is f64 [2, 3] but gamma is f32 [3] and beta is f64 [3]: both must be as long as x's last axis, "
      "and of x's type",
      Error);
}

TEST_CASE("freed memory is used again, and asking for too much names the bytes") {
  const auto backend = open_cpu({.threads = 1});
  { const Tensor x({1 << 20}, DType::f32, *backend); }
  const std::size_t peak = backend->memory().peak;
  { const Tensor x({1 << 20}, DType::f32, *backend); }
  CHECK(backend->memory().peak == peak);
  CHECK(backend->memory().in_use == 0);
  try {
    const Tensor x({Dim{1} << 45}, DType::f64, *backend);
    FAIL("expected out of memory, got 256 TB");
  } catch (const Error& e) {
    CHECK(e.failure() == Failure::memory);
    CHECK(std::string(e.what()).find("needed 281474976710656 bytes") != std::string::npos);
  }
}

TEST_CASE("a kernel set that does not run here is refused with those that do and the reason") {
  const std::vector<std::string> runnable = runnable_cpu_kernels();
  std::vector<std::string> refused = {"x86-64-v9"};
  for (const std::string& name : cpu_kernel_names())
    if (name != "auto" && std::find(runnable.begin(), runnable.end(), name) == runnable.end()) refused.push_back(name);
  std::ifstream file("/proc/cpuinfo");
  const std::string processor{std::istreambuf_iterator<char>(file), {}};
  const bool has_tiles = processor.find(" amx_bf16") != std::string::npos;
  for (const std::string& name : refused) {
    INFO(name);
    try {
      open_cpu({.kernels = name});
      FAIL("it was opened");
    } catch (const Error& error) {
      CHECK(error.failure() == Failure::usage);
      const std::string message = error.what();
      const std::string expected =
          fmt::format("--cpu-kernels: expected one of: {}; got {}", fmt::join(runnable, ", "), name);
      if (name != "x86-64-v4-amx") CHECK(message == expected);
      else if (has_tiles) CHECK(message.starts_with(expected));  // the system or the build may lack what they need
      else CHECK(message.starts_with(expected + ": "));
    }
  }
}
