// Kernels read whole vectors, and a matrix product some operands where they lie: never beyond their end. And a dry run
// knows what memory they take.
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
    for (const Sizes& size : std::vector<Sizes>{{1, 1, 1},
                                                {5, 17, 3},
                                                {7, 53, 701},
                                                {33, 29, 1000},
                                                {200, 53, 387},
                                                {70, 53, 64},
                                                {33, 29, 1056},
                                                // Whole tiles, and such that are whole in one direction alone.
                                                {6, 16, 40},
                                                {5, 16, 40},
                                                {6, 17, 40},
                                                {12, 48, 40},
                                                {6, 32, 40},
                                                {18, 80, 40},
                                                {32, 64, 40}})
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
        for (const bool transpose_a : {false, true})
          for (const bool transpose_b : {false, true}) {
            INFO(fmt::format("{} {} x {} x {}, transposed {} {}, {}", name_of(dtype), size.rows, size.columns,
                             size.depth, transpose_a, transpose_b, kernels));
            check_product(size, dtype, transpose_a, transpose_b, *backend);
          }
  }
}

TEST_CASE("no kernel touches memory beyond its tensors") {
  const auto backend = open_cpu({.threads = 2});
  Kernels& k = *backend->kernels();
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const Dim rows : {3, 70})
      for (const Dim columns : {16, 33}) {
        const std::string what = fmt::format("{} [{}, {}]", name_of(dtype), rows, columns);
        INFO(what);
        const DType computed = compute_type(dtype);
        const Shape matrix{rows, columns}, heads{rows, 3 * columns};
        const Guarded x(matrix, dtype, *backend), y(matrix, dtype, *backend), z(matrix, dtype, *backend);
        const Guarded row({columns}, dtype, *backend), other_row({columns}, dtype, *backend);
        const Guarded numbers({rows}, DType::i32, *backend), keys({rows}, DType::i64, *backend);
        const Guarded each({rows}, computed, *backend), pairs({rows, 2}, computed, *backend);
        const Guarded one({1}, computed, *backend), norm({1}, DType::f64, *backend);
        const Dropout dropout{.threshold = 1000, .key = 1, .row_keys = keys};
        const LayerNorm layer{.gamma = row, .beta = row, .dropout = dropout};
        const Guarded wide(matrix, DType::f64, *backend);
        k.cast(x, wide);
        k.copy_past_caches(x, y);
        k.unary(Unary::gelu, x, y);
        k.unary_backward(Unary::gelu, x, y, z, {});
        k.unary_backward(Unary::gelu, x, y, z, row);
        k.binary(Binary::mul, x, y, z);
        k.binary(Binary::add, x, row, z);
        k.scale(x, 2, z);
        k.expand(one, 2, z);
        k.copy_block(x, columns, y, columns, rows, columns);
        k.dropout(x, dropout, y);
        k.sum(x, 1, one);
        k.sum_rows(x, row);
        k.norm(x, norm);
        CHECK(k.first_non_finite(y) == -1);
        k.softmax(x, y);
        k.softmax_backward(y, x, z);
        k.layer_norm(x, y, layer, z, y, pairs);
        k.layer_norm_backward(z, pairs, layer, y, x, y, row, other_row);
        k.gather(x, numbers, y);
        k.scatter_add(x, numbers, y, false);
        k.scatter_add(x, numbers, y, true);
        k.cross_entropy(x, numbers, 1, each, one);
        k.cross_entropy_backward(x, numbers, 1, each, one, y);
        k.point_loss(PointLoss::squared_error, x, y, 1, one);
        k.point_loss_backward(PointLoss::squared_error, x, y, 1, one, z);
        k.argmax(x, numbers);

        const Guarded qkv(heads, dtype, *backend), dqkv(heads, dtype, *backend), offsets({2}, DType::i32, *backend);
        const std::int32_t places[] = {0, static_cast<std::int32_t>(rows)};
        backend->upload(places, offsets);
        const Attention attention{.offsets = offsets, .heads = 1, .longest = rows, .dropout = dropout};
        k.attention(qkv, attention, y, each);
        k.attention_backward(qkv, attention, y, each, x, dqkv);
      }
}

TEST_CASE("a dry run counts tensors as the device does") {
  const auto backend = open_cpu({.threads = 1});
  DryRun dry(*backend);
  for (Backend* const b : {static_cast<Backend*>(&dry), backend.get()}) {
    const Tensor first({17}, DType::f32, *b), none({0}, DType::f32, *b), second({100'000}, DType::u8, *b);
    CHECK(b->memory().in_use == 128 + 64 + 100'032);
    { const Tensor third({16}, DType::f32, *b); }
    CHECK(b->memory().in_use == 128 + 64 + 100'032);
    CHECK(b->memory().peak == 128 + 64 + 100'032 + 64);
  }
}

TEST_CASE("attention takes on its way back the memory that a dry run counts") {
  const auto peak = [](Backend& backend, DType dtype) {
    const Tensor qkv({300, 96}, dtype, backend), context({300, 32}, dtype, backend);
    const Tensor log_sum({300, 2}, compute_type(dtype), backend), offsets({4}, DType::i32, backend);
    const std::int32_t places[] = {0, 3, 250, 300};
    backend.upload(places, offsets);
    for (const Tensor& x : {qkv, context, log_sum}) ops::fill(x, 1);
    const std::size_t before = backend.memory().in_use;
    ops::attention_backward(qkv, {.offsets = offsets, .heads = 2, .longest = 247}, {context, log_sum}, context);
    return backend.memory().peak - before;
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const auto backend = open_cpu({.threads = 3});
    DryRun dry(*backend);
    const std::size_t predicted = peak(dry, dtype), taken = peak(*backend, dtype);
    INFO(name_of(dtype));
    CHECK(taken <= predicted + 64);
    CHECK(predicted <= taken);
  }
}

TEST_CASE("a product takes the memory that a dry run counts, however its operands lie") {
  const auto peak = [](Backend& backend, DType dtype, const ops::MatmulOptions& options, Dim rows, Dim columns,
                       Dim depth = 700) {
    const auto shape = [](bool transposed, Dim r, Dim c) { return transposed ? Shape{c, r} : Shape{r, c}; };
    const Tensor a(shape(options.transpose_a, rows, depth), dtype, backend);
    const Tensor b(shape(options.transpose_b, depth, columns), dtype, backend);
    const std::size_t before = backend.memory().in_use;
    ops::matmul(a, b, options);
    return backend.memory().peak - before;
  };
  for (const DType half : {DType::bf16, DType::f16}) {  // so large that a part of the result waits for the next depth
    const auto backend = open_cpu({.threads = 2});
    DryRun dry(*backend);
    const std::size_t predicted = peak(dry, half, {}, 1030, 5, 1601), taken = peak(*backend, half, {}, 1030, 5, 1601);
    INFO(name_of(half));
    CHECK(taken <= predicted + 128);
    CHECK(predicted <= taken);
  }
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
