// Kernels that work on rows: against the CPU's, for widths and counts that no row of the op table has.
#include "cuda_emulated/against_cpu.h"
#include "support/op_values.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::testing;

TEST_CASE("the gradient of a table equals the CPU's for short runs, long runs, and runs that end where a block ends") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const std::vector<Dim>& runs : std::vector<std::vector<Dim>>{
             {1}, {32}, {33}, {31, 1, 32, 64, 3}, {200}, {5, 90, 1, 1, 100, 27}, {32, 32, 32}})
      for (const auto& [accumulate, columns] :
           {std::pair(false, Dim{37}), std::pair(true, Dim{37}), std::pair(true, Dim{2'064})})
        check_same(tolerance(dtype), [&](Backend& b) {
          std::vector<std::int32_t> rows;
          for (std::size_t r = 0; r < runs.size(); ++r)
            rows.insert(rows.end(), static_cast<std::size_t>(runs[r]), static_cast<std::int32_t>(2 * r + 1));
          Random random(4);
          random.shuffle(rows);
          const auto count = static_cast<Dim>(rows.size());
          const Tensor table = noise({15, columns}, dtype, b, 2);
          return ops::scatter_add(noise({count, columns}, dtype, b, 1), ops::from_host(rows, {count}, b), {15, columns},
                                  {table, accumulate});
        });
}

TEST_CASE("a row that the table does not have is refused also if the sort sees no difference to one that it has") {
  const auto gpu = emulated_gpu();
  for (const std::int32_t wrong : {1 + 4, 1 - 4}) {  // of the lowest two bits the sort sees
    std::vector<std::int32_t> rows(100, 1);
    rows[50] = wrong;
    const Tensor table =
        ops::scatter_add(noise({100, 9}, DType::f32, *gpu, 1), ops::from_host(rows, {100}, *gpu), {3, 9});
    const std::string message = fmt::format("scatter_add: row number 50 is {}, expected 0 to 2", wrong);
    CHECK_THROWS_WITH_AS(ops::to_host<double>(table), message.c_str(), Error);
  }
}

TEST_CASE("the gradient of a table takes millions of indices") {
  const auto gpu = emulated_gpu();
  constexpr Dim kCount = 32 * 65'536 + 1;
  const Tensor rows = ops::full({kCount}, 1, DType::i32, *gpu);
  CHECK(ops::to_host<double>(ops::scatter_add(ops::full({kCount, 1}, 1, DType::f32, *gpu), rows, {3, 1})) ==
        std::vector<double>{0, kCount, 0});
}

TEST_CASE("the slope of a function and the sum of its rows equal the CPU's for any number of rows and columns") {
  for (const DType dtype : kFloating)
    for (const Dim rows : {0, 1, 9, 64, 65, 200})
      for (const Dim columns : {3, 8, 256, 264, 600}) {
        CAPTURE(rows);
        CAPTURE(columns);
        const auto with_sum = [&](Backend& b) {
          const Tensor sum = ops::full({columns}, 7, dtype, b);
          const Tensor dx = ops::unary_backward(Unary::gelu, noise({rows, columns}, dtype, b, 1),
                                                noise({rows, columns}, dtype, b, 2), sum);
          return std::pair(dx, sum);
        };
        check_same(2 * tolerance(dtype), [&](Backend& b) { return with_sum(b).first; });
        check_same(2 * tolerance(dtype), [&](Backend& b) { return with_sum(b).second; });
      }
}

TEST_CASE("layer normalisation equals the CPU's for rows of any width") {
  for (const DType dtype : kFloating)
    for (const Dim columns : {3, 8, 255, 256, 257, 600, 1030, 4096}) {
      CAPTURE(columns);
      const auto make = [&](Backend& b) {
        return LayerNorm{
            .gamma = noise({columns}, dtype, b, 3), .beta = noise({columns}, dtype, b, 4), .epsilon = 1e-3};
      };
      check_same(2 * tolerance(dtype), [&](Backend& b) {
        return ops::layer_norm(noise({70, columns}, dtype, b, 1), {}, make(b)).y;
      });
      const auto backward = [&](Backend& b) {
        const auto saved =
            ops::layer_norm(noise({70, columns}, dtype, b, 1), noise({70, columns}, dtype, b, 2), make(b));
        return ops::layer_norm_backward(saved, make(b), noise({70, columns}, dtype, b, 5));
      };
      check_same(2 * tolerance(dtype), [&](Backend& b) { return backward(b).dx; });
      check_same(2 * tolerance(dtype), [&](Backend& b) { return backward(b).dgamma; });
      check_same(2 * tolerance(dtype), [&](Backend& b) { return backward(b).dbeta; });
    }
}

TEST_CASE("layer normalisation equals the CPU's for so many rows that a block takes several") {
  const Dim rows = 8'195, columns = 260;  // two warps
  for (const DType dtype : {DType::f32, DType::f16})
    for (const int part : {0, 1, 2})
      check_same(2 * tolerance(dtype), [&](Backend& b) {
        const LayerNorm options{.gamma = noise({columns}, dtype, b, 3),
                                .beta = noise({columns}, dtype, b, 4),
                                .epsilon = 1e-3,
                                .dropout = some_dropout(rows, b)};
        const ops::Normalized h =
            ops::layer_norm(noise({rows, columns}, dtype, b, 1), noise({rows, columns}, dtype, b, 2), options);
        return part == 0 ? h.y : part == 1 ? h.sum : h.statistics;
      });
}

TEST_CASE("a row of ones is normalised to beta, with BERT's epsilon") {
  const auto gpu = emulated_gpu();
  for (const DType dtype : kFloating)
    for (const Dim columns : {41, 47, 49, 768}) {  // 41 · (1 / 41) is not 1 in f32, 49 · (1 / 49) is not in f64
      const LayerNorm options{
          .gamma = noise({columns}, dtype, *gpu, 3), .beta = noise({columns}, dtype, *gpu, 4), .epsilon = 1e-12};
      CHECK(ops::to_host<double>(ops::layer_norm(ops::full({1, columns}, 1, dtype, *gpu), {}, options).y) ==
            ops::to_host<double>(options.beta));
    }
}

TEST_CASE("layer normalisation takes rows that begin anywhere, and says how long they may be") {
  for (const DType dtype : kFloating)
    check_same(2 * tolerance(dtype), [&](Backend& b) {
      const LayerNorm options{.gamma = noise({16}, dtype, b, 3), .beta = noise({16}, dtype, b, 4), .epsilon = 1e-3};
      const Tensor x = noise({71 * 16}, dtype, b, 1).rows(1, 70 * 16 + 1).reshape({70, 16});
      return ops::layer_norm(x, {}, options).y;
    });
  const auto gpu = emulated_gpu();
  const Tensor wide = ops::full({2, 4097}, 1, DType::f32, *gpu), scale = ops::full({4097}, 1, DType::f32, *gpu);
  CHECK_THROWS_WITH_AS(ops::layer_norm(wide, {}, {.gamma = scale, .beta = scale}),
                       "layer_norm: expected at most 4096 columns on cuda, got 4097", Error);
}

TEST_CASE("layer normalisation's statistics are those of the sum as it is kept for backward") {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  for (Backend* const b : {gpu.get(), cpu.get()})
    for (const DType dtype : kFloating) {
      const Dim rows = 5, columns = 600;
      const LayerNorm options{
          .gamma = noise({columns}, dtype, *b, 3), .beta = noise({columns}, dtype, *b, 4), .epsilon = 1e-3};
      const auto saved =
          ops::layer_norm(noise({rows, columns}, dtype, *b, 1), noise({rows, columns}, dtype, *b, 2), options);
      const auto statistics = ops::to_host<double>(saved.statistics);
      for (Dim row = 0; row < rows; ++row) {
        double mean = 0;
        for (const double value : ops::to_host<double>(saved.sum.rows(row, row + 1))) mean += value / columns;
        CHECK(std::abs(mean - statistics[static_cast<std::size_t>(2 * row)]) <= 1e-6);
      }
    }
}

TEST_CASE("a row of one column is its own mean: its gradient is 0, and beta's is the sum") {
  const auto gpu = emulated_gpu();
  for (const DType dtype : kFloating) {
    const LayerNorm options{.gamma = noise({1}, dtype, *gpu, 3), .beta = noise({1}, dtype, *gpu, 4), .epsilon = 1e-3};
    const Tensor x = noise({70, 1}, dtype, *gpu, 1), dy = noise({70, 1}, dtype, *gpu, 2);
    const auto saved = ops::layer_norm(x, {}, options);
    const auto y = ops::to_host<double>(saved.y), beta = ops::to_host<double>(options.beta);
    for (const double value : y) CHECK(value == beta[0]);
    const auto gradients = ops::layer_norm_backward(saved, options, dy);
    for (const double value : ops::to_host<double>(gradients.dx)) CHECK(value == 0);
    CHECK(ops::item(gradients.dgamma) == 0);
    double sum = 0;
    for (const double value : ops::to_host<double>(dy)) sum += value;
    CHECK(std::abs(ops::item(gradients.dbeta) - sum) <= 4 * tolerance(dtype) * std::abs(sum) + 1e-6);
  }
}

TEST_CASE("rows of any length and place are picked whole") {
  const auto gpu = emulated_gpu();
  const auto cpu = open_cpu({.threads = 1});
  for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::i64})
    for (const Dim columns : {1, 2, 3, 8, 33, 64})
      for (const Dim skipped : {0, 1}) {
        const auto picked = [&](Backend& b) {
          std::vector<std::int32_t> values;
          for (Dim i = 0; i < 12 * columns; ++i) values.push_back(static_cast<std::int32_t>(i * 7 % 251));
          const Tensor all = ops::cast(ops::from_host(values, {12 * columns}, b), dtype);
          const Tensor table = all.window(skipped * columns, {11, columns});
          return ops::to_host<double>(
              ops::gather(table, ops::from_host(std::vector<std::int32_t>{10, 0, 3, 3, 9, 1, 2, 4, 10}, {9}, b)));
        };
        CHECK(picked(*gpu) == picked(*cpu));
      }
}

TEST_CASE("a cross entropy of many columns equals the CPU's, and NaN is not hidden") {
  for (const DType dtype : kFloating)
    for (const Dim columns : {2, 255, 2048, 3001}) {
      const auto labels = [&](Backend& b) {
        return ops::from_host(std::vector<std::int32_t>{0, -1, static_cast<std::int32_t>(columns - 1)}, {3}, b);
      };
      check_same(tolerance(dtype), [&](Backend& b) {
        return ops::cross_entropy(noise({3, columns}, dtype, b, 1), labels(b), 2).loss;
      });
      check_same(tolerance(dtype), [&](Backend& b) {
        const Tensor logits = noise({3, columns}, dtype, b, 1);
        return ops::cross_entropy_backward(logits, labels(b), 2, ops::cross_entropy(logits, labels(b), 2).log_sum,
                                           ops::full({1}, 0.7, compute_type(dtype), b));
      });
    }
  const auto gpu = emulated_gpu();
  const std::vector<float> scores{1e30f, 1e30f, -1e30f, 80, 90, 100, -1e38f, -1e38f, -1e38f, 0, 1, NAN};
  const auto y = ops::to_host<float>(ops::softmax(ops::from_host(scores, {4, 3}, *gpu)));
  for (std::size_t row = 0; row < 3; ++row) CHECK(y[3 * row] + y[3 * row + 1] + y[3 * row + 2] == doctest::Approx(1.0));
  CHECK(std::isnan(y[9] + y[10] + y[11]));
}

TEST_CASE("columns of minus infinity before the first number have no share in a softmax") {
  const auto gpu = emulated_gpu();
  std::vector<double> logits(2 * 300, -std::numeric_limits<double>::infinity());
  for (int i = 0; i < 300; ++i) logits[static_cast<std::size_t>(300 + i)] = i < 8 || i > 250 ? -INFINITY : 0.01 * i;
  logits[17] = 3;
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor x = ops::cast(ops::from_host(logits, {2, 300}, *gpu), dtype);
    const Tensor y({2, 300}, dtype, *gpu), log_sum({2}, dtype, *gpu), loss({1}, dtype, *gpu);
    gpu->kernels()->softmax(x, y);
    gpu->kernels()->cross_entropy(x, ops::from_host(std::vector<std::int32_t>{17, 250}, {2}, *gpu), 1, log_sum, loss);
    const auto p = ops::to_host<double>(y);
    double sum = 0;
    for (int i = 8; i <= 250; ++i) sum += std::exp(0.01 * i - 2.5);
    CHECK(p[17] == doctest::Approx(1));
    CHECK(p[0] == 0);
    CHECK(p[300 + 250] == doctest::Approx(1 / sum));
    CHECK(ops::item(loss) == doctest::Approx(std::log(sum)).epsilon(1e-6));
  }
}
