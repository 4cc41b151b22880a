// What a product of bf16 is, to the bit, on every processor: what the tile unit of AMX makes of blocks of 32.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/random.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace bertrand;

namespace {

/// x(k) and x(k + 1), two numbers of bf16.
struct Pair {
  BFloat16 first, second;
};

float flushed(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

/// c + x · y, rounded once; what is subnormal, given or made, is 0.
float multiply_add(BFloat16 x, BFloat16 y, float c) {
  return flushed(std::fma(flushed(static_cast<float>(x)), flushed(static_cast<float>(y)), flushed(c)));
}

/// c + a · b of vdpbf16ps as Intel's manual has it: the second product is added first.
float multiply_pair(Pair a, Pair b, float c) {
  return multiply_add(a.first, b.first, multiply_add(a.second, b.second, c));
}

/// [rows, columns] numbers of which sums show in which order they were added: in every other row such that vanish
/// beside each other, in the others such that are subnormal or whose products are.
std::vector<BFloat16> telling(Dim rows, Dim columns, std::uint64_t key) {
  constexpr float kLarge[] = {1, -1, 4096, -4096, 0x1p24f, -0x1p24f, 0x1p-12f, 0.33f};
  constexpr float kSmall[] = {1, -1, 1.5e-38f, -1.5e-38f, 5e-39f, -3e-39f, 1e-19f, -2e-19f};
  Random random(key);
  std::vector<BFloat16> values;
  for (Dim i = 0; i < rows * columns; ++i)
    values.emplace_back((i / columns % 2 == 0 ? kLarge : kSmall)[static_cast<int>(8 * random.uniform())]);
  return values;
}

/// The matrix or, if `transposed`, its transpose.
Tensor matrix(const std::vector<BFloat16>& values, Dim rows, Dim columns, bool transposed, Backend& backend) {
  std::vector<BFloat16> turned(values.size());
  for (Dim i = 0; i < rows; ++i)
    for (Dim j = 0; j < columns; ++j)
      turned[static_cast<std::size_t>(transposed ? j * rows + i : i * columns + j)] =
          values[static_cast<std::size_t>(i * columns + j)];
  const Tensor x(transposed ? Shape{columns, rows} : Shape{rows, columns}, DType::bf16, backend);
  backend.upload(turned.data(), x);
  return x;
}

struct Sizes {
  Dim rows, columns, depth;
};

/// [rows, columns] numbers in [-2, 2), and of `seldom` numbers one that is infinite, NaN, or nearly too large.
std::vector<BFloat16> overflowing(Dim rows, Dim columns, Dim seldom, std::uint64_t key) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 0, 3e38f, -3e38f,
                                1e38f,     -1e38f};
  Random random(key);
  std::vector<BFloat16> values;
  for (Dim i = 0; i < rows * columns; ++i) {
    const bool special = random.below(static_cast<std::uint32_t>(seldom)) == 0;
    values.emplace_back(special ? kSpecial[random.below(8)] : static_cast<float>(4 * random.uniform() - 2));
  }
  return values;
}

/// A · Bᵀ, and kStart + A · Bᵀ.
struct InBlocks {
  static constexpr float kStart = 0.25f;
  std::vector<float> product, sum;

  void push_back(float from_zero, float from_start) {
    product.push_back(static_cast<float>(BFloat16(from_zero)));
    sum.push_back(static_cast<float>(BFloat16(from_start)));
  }
};

/// As tdpbf16ps adds it up: of each 32 along the depth, filled up with zeros, a chain over the even ones and one over
/// the odd ones, both from zero, and then the sum of both.
InBlocks in_blocks(const Sizes& size, const std::vector<BFloat16>& a, const std::vector<BFloat16>& b) {
  InBlocks c;
  for (Dim i = 0; i < size.rows; ++i)
    for (Dim j = 0; j < size.columns; ++j) {
      float product = 0, sum = InBlocks::kStart;
      for (Dim block = 0; block < size.depth; block += 32) {
        float chains[2] = {};
        for (Dim k = block; k < block + 32; ++k) {
          const auto x = k < size.depth ? a[static_cast<std::size_t>(i * size.depth + k)] : BFloat16();
          const auto y = k < size.depth ? b[static_cast<std::size_t>(j * size.depth + k)] : BFloat16();
          chains[k % 2] = multiply_add(x, y, chains[k % 2]);
        }
        const float both = flushed(chains[0] + chains[1]);
        product = flushed(flushed(product) + both);
        sum = flushed(flushed(sum) + both);
      }
      c.push_back(product, sum);
    }
  return c;
}

/// Equal numbers, and NaN at the same places.
bool same(const Tensor& got, const std::vector<float>& expected) {
  return std::ranges::equal(ops::to_host<float>(got), expected,
                            [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// Every kernel set computes A · Bᵀ as in_blocks() does, however the operands lie, and adds it to a bias or to C.
void check_product(const Sizes& size, const std::vector<BFloat16>& a, const std::vector<BFloat16>& b) {
  const InBlocks expected = in_blocks(size, a, b);
  for (const std::string& kernels : runnable_cpu_kernels()) {
    const auto backend = open_cpu({.threads = 2, .kernels = kernels});
    const Tensor bias = ops::full({size.columns}, InBlocks::kStart, DType::bf16, *backend);
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        INFO(fmt::format("{} x {} x {}, transposed {} {}, {}", size.rows, size.columns, size.depth, transpose_a,
                         transpose_b, kernels));
        const Tensor left = matrix(a, size.rows, size.depth, transpose_a, *backend);
        const Tensor right = matrix(b, size.columns, size.depth, !transpose_b, *backend);
        Gemm options{.transpose_a = transpose_a, .transpose_b = transpose_b};
        const Tensor c({size.rows, size.columns}, DType::bf16, *backend);
        backend->kernels()->gemm(left, right, c, options);
        CHECK(same(c, expected.product));
        options.bias = bias;
        backend->kernels()->gemm(left, right, c, options);
        CHECK(same(c, expected.sum));
        ops::fill(c, InBlocks::kStart);
        backend->kernels()->gemm(left, right, c,
                                 {.transpose_a = transpose_a, .transpose_b = transpose_b, .accumulate = true});
        CHECK(same(c, expected.sum));
      }
  }
}

}  // namespace

TEST_CASE("a product of bf16 adds up even and odd k of 32 apart, and knows no subnormal numbers") {
  for (const Sizes& size : std::vector<Sizes>{{1, 1, 1},
                                              {2, 2, 2},
                                              {5, 17, 3},
                                              {29, 70, 33},
                                              {64, 64, 64},
                                              {32, 96, 32},
                                              {9, 40, 801},
                                              {40, 150, 1633},
                                              {300, 70, 1600},
                                              {300, 33, 1601},
                                              {1030, 5, 1601},
                                              {5, 1030, 1601},
                                              // As deep as is multiplied at once, by some kernel set.
                                              {9, 40, 384},
                                              {9, 40, 768},
                                              {9, 40, 1024},
                                              {9, 40, 1536}})
    check_product(size, telling(size.rows, size.depth, 1), telling(size.columns, size.depth, 2));
}

TEST_CASE("a product of bf16 has infinities and NaN exactly where its sums have them") {
  for (const Sizes& size : std::vector<Sizes>{{1, 1, 1}, {5, 17, 3}, {29, 70, 33}, {300, 40, 65}, {9, 40, 1633}}) {
    const Dim seldom = 2 * size.depth;
    check_product(size, overflowing(size.rows, size.depth, seldom, 1),
                  overflowing(size.columns, size.depth, seldom, 2));
  }
}

TEST_CASE("a product of bf16 leaves subnormal numbers to what follows it") {
  for (const std::string& kernels : runnable_cpu_kernels()) {
    const auto backend = open_cpu({.threads = 1, .kernels = kernels});
    const Tensor half = ops::full({1, 1}, 1, DType::bf16, *backend), one = ops::full({1, 1}, 1, DType::f32, *backend);
    ops::matmul(half, half);
    CHECK(ops::to_host<float>(ops::matmul(ops::full({1, 1}, 1e-39, DType::f32, *backend), one))[0] > 0);
  }
}

#if defined(__x86_64__)
namespace {

/// The instruction: c + a · b of 16 pairs.
__attribute__((target("avx512f,avx512bf16"))) void multiply_pairs(const std::uint32_t* a, const std::uint32_t* b,
                                                                  float* c) {
  const __m512i left = _mm512_loadu_si512(a), right = _mm512_loadu_si512(b);
  _mm512_storeu_ps(c, _mm512_dpbf16_ps(_mm512_loadu_ps(c), (__m512bh)left, (__m512bh)right));
}

}  // namespace

TEST_CASE("what these tests take vdpbf16ps for is what the processor does, bit by bit") {
  if (!__builtin_cpu_supports("avx512bf16")) {
    MESSAGE("SKIPPED: this processor has no AVX512_BF16");
    return;
  }
  const auto pair = [](std::uint32_t word) { return std::bit_cast<Pair>(word); };
  Random random(1);
  int wrong = 0, finite = 0;
  for (int n = 0; n < 100'000; ++n) {
    std::uint32_t a[16], b[16];
    float c[16], expected[16];
    // Every exponent there is, then such that the three terms are of about the same size.
    for (int i = 0; i < 16; ++i) {
      const auto word = [&] {
        const std::uint32_t bits = random.next();
        return n % 2 == 0 ? bits : (bits & 0x87ff87ffu) | 0x3c003c00u;
      };
      a[i] = word(), b[i] = word(), c[i] = std::bit_cast<float>(word());
      expected[i] = multiply_pair(pair(a[i]), pair(b[i]), c[i]);
    }
    multiply_pairs(a, b, c);
    for (int i = 0; i < 16; ++i) {
      finite += std::isfinite(c[i]) && c[i] != 0;
      wrong += std::isnan(expected[i])
                   ? !std::isnan(c[i])
                   : std::bit_cast<std::uint32_t>(c[i]) != std::bit_cast<std::uint32_t>(expected[i]);
    }
  }
  CHECK(wrong == 0);
  CHECK(finite > 1'000'000);
}
#endif
