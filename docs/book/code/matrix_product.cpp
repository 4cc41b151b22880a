// A matrix product in four steps, each faster than the one before and all with the same bits.
// usage: book_matrix_product [--time]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tensor/backends.h"
#include "tensor/cpu/lanes.h"
#include "tensor/ops.h"

using namespace bertrand;
using bertrand::cpu::Lanes;

namespace {

using Matrix = std::vector<float>;  // [n, n], row after row

// ---- 1: as the formula says

void naive(const Matrix& a, const Matrix& b, Matrix& c, int n) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum = std::fma(a[i * n + k], b[k * n + j], sum);
      c[i * n + j] = sum;
    }
}

// ---- 2: in blocks that stay in the cache, and along rows

constexpr int kBlock = 64;

void blocked(const Matrix& a, const Matrix& b, Matrix& c, int n) {
  std::fill(c.begin(), c.end(), 0.0f);
  for (int k0 = 0; k0 < n; k0 += kBlock)
    for (int i = 0; i < n; ++i)
      for (int k = k0; k < k0 + kBlock; ++k)
        for (int j = 0; j < n; ++j) c[i * n + j] = std::fma(a[i * n + k], b[k * n + j], c[i * n + j]);
}

// ---- 3: packed, with a tile of C in registers

constexpr int kRows = 6, kColumns = Lanes<float>::kCount;  // 6 × 16 numbers of C are computed at once

/// Rows [i, i + kRows) of a, column after column.
void pack_left(const Matrix& a, int i, int n, float* panel) {
  for (int k = 0; k < n; ++k)
    for (int r = 0; r < kRows; ++r) *panel++ = a[(i + r) * n + k];
}

/// Columns [j, j + kColumns) of b, row after row.
void pack_right(const Matrix& b, int j, int n, float* panel) {
  for (int k = 0; k < n; ++k, panel += kColumns) std::copy_n(&b[k * n + j], kColumns, panel);
}

/// A tile of C: the left panel times the right one.
void multiply_tile(const float* left, const float* right, int n, float* c) {
  Lanes<float> tile[kRows];
  for (auto& row : tile) row = Lanes<float>(0.0f);
  for (int k = 0; k < n; ++k, left += kRows, right += kColumns) {
    const auto columns = Lanes<float>::load(right);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) tile[r] = fma(Lanes<float>(left[r]), columns, tile[r]);
  }
  for (int r = 0; r < kRows; ++r) tile[r].store(c + r * n);
}

void packed(const Matrix& a, const Matrix& b, Matrix& c, int n) {
  Matrix left(a.size()), right(static_cast<std::size_t>(kColumns * n));
  for (int i = 0; i < n; i += kRows) pack_left(a, i, n, &left[i * n]);
  for (int j = 0; j < n; j += kColumns) {
    pack_right(b, j, n, right.data());
    for (int i = 0; i < n; i += kRows) multiply_tile(&left[i * n], right.data(), n, &c[i * n + j]);
  }
}

// ---- 4: the library

/// Made once for a size, as a network has its tensors already.
class Library {
 public:
  Library(const Matrix& a, const Matrix& b, int n, const std::string& kernels = "auto")
      : backend_(open_cpu({.threads = 1, .kernels = kernels})),
        a_(ops::from_host(a, {n, n}, *backend_)),
        b_(ops::from_host(b, {n, n}, *backend_)) {}
  void multiply() { c_ = ops::matmul(a_, b_); }
  Matrix result() const { return ops::to_host<float>(c_); }

 private:
  std::unique_ptr<Backend> backend_;
  Tensor a_, b_, c_;
};

/// Numbers between −1 and 1 that anyone can make.
Matrix numbers(int n, unsigned seed) {
  Matrix x(static_cast<std::size_t>(n) * n);
  for (float& v : x) v = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1;
  return x;
}

template <class Work>
void time(const char* name, int n, const Work& work) {
  double best = 1e9;
  for (int run = 0; run < 7; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("%-8s %8.1f ms %8.1f GFLOP/s\n", name, best * 1e3, 2.0 * n * n * n / best * 1e-9);
}

}  // namespace

int main(int argc, char**) try {
  const bool timed = argc > 1;
  const int n = timed ? 768 : 192;  // a multiple of 6, 16 and 64
  const Matrix a = numbers(n, 1), b = numbers(n, 2);
  Matrix c1(a.size()), c2(a.size()), c3(a.size());
  Library library(a, b, n);
  naive(a, b, c1, n);
  blocked(a, b, c2, n);
  packed(a, b, c3, n);
  library.multiply();
  std::printf("the same bits as the naive loop: blocked %s, packed %s, library %s\n", c2 == c1 ? "yes" : "no",
              c3 == c1 ? "yes" : "no", library.result() == c1 ? "yes" : "no");
  if (!timed) return 0;
  time("naive", n, [&] { naive(a, b, c1, n); });
  time("blocked", n, [&] { blocked(a, b, c2, n); });
  time("packed", n, [&] { packed(a, b, c3, n); });
  for (const std::string& kernels : runnable_cpu_kernels()) {
    if (kernels != "x86-64-v3") continue;  // the instructions that this file is compiled for
    Library same(a, b, n, kernels);
    time("library", n, [&] { same.multiply(); });
  }
  time("its best", n, [&] { library.multiply(); });
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
