// A matrix product reads whole vectors, and some operands where they lie: never beyond their end.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>

#include "tensor/backends.h"
#include "tensor/dry_run.h"
#include "tensor/ops.h"

using namespace bertrand;

namespace {

/// A tensor that ends where a page begins that may not be touched while this lives.
class Guarded {
 public:
  Guarded(const Shape& shape, DType dtype, Backend& backend) {
    const auto page = static_cast<Dim>(sysconf(_SC_PAGESIZE)), size = static_cast<Dim>(size_of(dtype));
    const Tensor block({shape.elements() + 2 * page / size}, dtype, backend);
    const auto begin = reinterpret_cast<std::uintptr_t>(block.data());
    const std::uintptr_t guard = (begin + block.bytes()) / page * page - page;
    guard_ = {reinterpret_cast<void*>(guard), static_cast<std::size_t>(page)};
    const auto end = static_cast<Dim>(guard - begin) / size;
    tensor_ = block.window(end - shape.elements(), shape);
    ops::fill(tensor_, 1);
    REQUIRE(mprotect(guard_.data, guard_.bytes, PROT_NONE) == 0);
  }
  ~Guarded() { mprotect(guard_.data, guard_.bytes, PROT_READ | PROT_WRITE); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  operator const Tensor&() const { return tensor_; }

 private:
  struct {
    void* data;
    std::size_t bytes;
  } guard_;
  Tensor tensor_;
};

struct Sizes {
  Dim rows, columns, depth;
};

void check_product(const Sizes& size, DType dtype, bool transpose_a, bool transpose_b, Backend& backend) {
  const auto& [rows, columns, depth] = size;
  const Guarded a(transpose_a ? Shape{depth, rows} : Shape{rows, depth}, dtype, backend);
  const Guarded b(transpose_b ? Shape{columns, depth} : Shape{depth, columns}, dtype, backend);
  const Guarded out({rows, columns}, dtype, backend), bias({columns}, dtype, backend);
  backend.kernels()->gemm(a, b, out, {.transpose_a = transpose_a, .transpose_b = transpose_b, .bias = bias});
  for (const float v : ops::to_host<float>(ops::cast(out, DType::f32)))
    REQUIRE(std::abs(v - static_cast<float>(depth + 1)) <= 4e-3f * static_cast<float>(depth + 1));
  backend.kernels()->gemm(a, b, out, {.transpose_a = transpose_a, .transpose_b = transpose_b, .accumulate = true});
}

}  // namespace

TEST_CASE("a product touches no memory beyond its operands, whatever is transposed and however it fits the tiles") {
  for (const std::string& kernels : runnable_cpu_kernels()) {
    const auto backend = open_cpu({.threads = 2, .kernels = kernels});
    for (const Sizes& size : std::vector<Sizes>{
             {1, 1, 1}, {5, 17, 3}, {7, 53, 701}, {33, 29, 1000}, {200, 53, 387}, {70, 53, 64}, {33, 29, 1056}})
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
        for (const bool transpose_a : {false, true})
          for (const bool transpose_b : {false, true}) {
            INFO(fmt::format("{} {} x {} x {}, transposed {} {}, {}", name_of(dtype), size.rows, size.columns,
                             size.depth, transpose_a, transpose_b, kernels));
            check_product(size, dtype, transpose_a, transpose_b, *backend);
          }
  }
}

TEST_CASE("a product takes the memory that a dry run counts, however its operands lie") {
  const auto peak = [](Backend& backend, DType dtype, const ops::MatmulOptions& options, Dim rows, Dim columns) {
    constexpr Dim kDepth = 700;
    const auto shape = [](bool transposed, Dim r, Dim c) { return transposed ? Shape{c, r} : Shape{r, c}; };
    const Tensor a(shape(options.transpose_a, rows, kDepth), dtype, backend);
    const Tensor b(shape(options.transpose_b, kDepth, columns), dtype, backend);
    const std::size_t before = backend.memory().in_use;
    ops::matmul(a, b, options);
    return backend.memory().peak - before;
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const Dim rows : {1, 200, 300})
      for (const Dim columns : {1, 2, 600})
        for (const bool transpose_a : {false, true})
          for (const bool transpose_b : {false, true}) {
            const auto backend = open_cpu({.threads = 2});
            DryRun dry(*backend);
            const ops::MatmulOptions options{.transpose_a = transpose_a, .transpose_b = transpose_b};
            const std::size_t predicted = peak(dry, dtype, options, rows, columns);
            const std::size_t taken = peak(*backend, dtype, options, rows, columns);
            INFO(name_of(dtype) << " " << rows << " x " << columns << ", transposed: " << transpose_a << transpose_b);
            CHECK(taken <= predicted + 128);  // each of two pieces is rounded up to 64 bytes
            CHECK(predicted <= taken);
          }
}
