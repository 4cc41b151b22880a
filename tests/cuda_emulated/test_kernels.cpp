// What no row of the op table reaches: kernels outside of graphs, sizes beyond one block, and the card's memory.
#include <doctest/doctest.h>

#include <cmath>

#include "cuda_emulated/compared_with_cpu.h"
#include "cuda_emulated/emulated_card.h"
#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/random.h"

using namespace bertrand;
using namespace bertrand::testing;

TEST_CASE("the emulated card calls itself cuda:0 and says what it is") {
  const auto card = emulated_card();
  CHECK(card->device().name() == "cuda:0");
  CHECK(card->description() == "cuda:0, emulated on the processor, 17 GB");
  CHECK_THROWS_WITH_AS(emulated_card({.index = 4}), "--device cuda:4: there are 4 cards, numbered from 0", Error);
}

TEST_CASE("a card that is too old is refused by name") {
  cuda::emulation::set_capability(7, 5);
  CHECK_THROWS_WITH_AS(
      emulated_card(),
      "--device cuda:0: expected a card of compute capability 8.0 or newer, emulated on the processor has 7.5", Error);
  cuda::emulation::set_capability(9, 0);
}

TEST_CASE("a build without kernels for the card says so") {
  cuda::emulation::build_for(10);
  CHECK_THROWS_WITH_AS(emulated_card(),
                       "--device cuda:0: expected a card that this build has kernels for, emulated on the processor "
                       "has 9.0 (no kernel image is available for execution on the device); hint: "
                       "-DCMAKE_CUDA_ARCHITECTURES=90",
                       Error);
  cuda::emulation::build_for(8);
  CHECK_NOTHROW(emulated_card());
}

TEST_CASE("a card that is lost is an error of its own, at whatever launch it happens, and ends no program") {
  bool in_library = false;
  for (const int launches : {1, 2, 3, 4, 5}) {
    CAPTURE(launches);
    const auto card = emulated_card();
    cuda::emulation::lose_card(launches);
    try {
      const Tensor x = noise({8, 8}, DType::bf16, *card, 1);
      ops::item(ops::sum(ops::matmul(x, x)));
      CHECK(false);
    } catch (const Error& error) {
      CHECK(error.failure() == Failure::distributed);
      CHECK(std::string(error.what()).starts_with("cuda: "));
      if (std::string(error.what()) == "cuda: cuBLAS: matmul: CUBLAS_STATUS_EXECUTION_FAILED") in_library = true;
    }
    cuda::emulation::lose_card(-1);
  }
  CHECK(in_library);
}

TEST_CASE("a cast between any two types equals the CPU's, bit for bit") {
  const auto card = emulated_card();
  const auto cpu = open_cpu({.threads = 1});
  const std::vector<double> values{0,    -0.0,    1,       2.5,        3.5,        100,  65504, 65519,   65520,
                                   1e-7, 5.96e-8, 2.98e-8, 1.00390625, 1.01171875, -7.3, 1e30,  INFINITY};
  for (const DType from : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8})
    for (const DType to : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
      if (!is_floating(to) && is_floating(from)) continue;  // what does not fit is nobody's promise
      const std::vector<double> fitting(values.begin(), is_floating(from) ? values.end() : values.begin() + 6);
      const std::vector<double> used = from == DType::u8 ? std::vector<double>{0, 1, 2, 100, 255} : fitting;
      const auto through = [&](Backend& b) {
        return ops::to_host<double>(
            ops::cast(ops::cast(ops::from_host(used, {static_cast<Dim>(used.size())}, b), from), to));
      };
      CHECK_MESSAGE(through(*card) == through(*cpu), name_of(from) << " to " << name_of(to));
    }
}

TEST_CASE("functions of one element and of two equal the CPU's, at the ends of their range too") {
  const std::vector<double> values{0,   -0.0,  1,     -1,       0.3,       200, -200, 88,
                                   -88, 3e-39, 1e-45, INFINITY, -INFINITY, NAN, 7,    2};
  const auto card = emulated_card();
  const auto cpu = open_cpu({.threads = 1});
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto x = [&](Backend& b) { return ops::cast(ops::from_host(values, {16}, b), dtype); };
    const auto check_each = [&](const auto& compute) {
      const auto got = ops::to_host<double>(compute(*card)), expected = ops::to_host<double>(compute(*cpu));
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

TEST_CASE("sums over many leaves equal the CPU's, in every type") {
  for (const DType dtype : kFloating) {
    CAPTURE(name_of(dtype));
    check_same(tolerance(dtype), [&](Backend& b) { return ops::sum(noise({20011}, dtype, b, 1)); });
    check_same(tolerance(dtype), [&](Backend& b) { return ops::norm(noise({20011}, dtype, b, 1)); });
    for (const Dim rows : {1, 31, 33, 256, 257, 700})
      check_same(tolerance(dtype), [&](Backend& b) { return ops::sum_to(noise({rows, 45}, dtype, b, 1), {45}); });
  }
}

TEST_CASE("the first number that is not finite is found, wherever it is") {
  const auto card = emulated_card();
  for (const DType dtype : kFloating) {
    CHECK(card->first_non_finite(noise({1000}, dtype, *card, 1)) == -1);
    for (const std::size_t at : {0, 255, 256, 999}) {
      std::vector<float> values(1000, 1);
      values[at] = at % 2 == 0 ? NAN : -INFINITY;
      values[999] = INFINITY;
      CHECK(card->first_non_finite(ops::cast(ops::from_host(values, {1000}, *card), dtype)) == static_cast<Dim>(at));
      CHECK_FALSE(std::isfinite(ops::item(ops::norm(ops::cast(ops::from_host(values, {1000}, *card), dtype)))));
    }
  }
  CHECK(card->first_non_finite(ops::full({3}, 1, DType::i32, *card)) == -1);
}

TEST_CASE("the first of the greatest is found, for few columns and for many") {
  for (const Dim columns : {1, 2, 31, 300, 1000})
    check_same(0, [&](Backend& b) {
      std::vector<float> values;
      for (Dim i = 0; i < 5 * columns; ++i) values.push_back(static_cast<float>(i * 7 % 13));
      return ops::argmax(ops::from_host(values, {5, columns}, b));
    });
}

TEST_CASE("the gradient of a table equals the CPU's for short runs, long runs, and runs that end where a leaf ends") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const std::vector<Dim>& runs : std::vector<std::vector<Dim>>{
             {1}, {32}, {33}, {31, 1, 32, 64, 3}, {200}, {5, 90, 1, 1, 100, 27}, {32, 32, 32}})
      for (const bool accumulate : {false, true})
        check_same(tolerance(dtype), [&](Backend& b) {
          std::vector<std::int32_t> rows;
          for (std::size_t r = 0; r < runs.size(); ++r)
            rows.insert(rows.end(), static_cast<std::size_t>(runs[r]), static_cast<std::int32_t>(2 * r + 1));
          Random random(4);
          random.shuffle(rows);
          const auto count = static_cast<Dim>(rows.size());
          const Tensor table = noise({15, 37}, dtype, b, 2);
          return ops::scatter_add(noise({count, 37}, dtype, b, 1), ops::from_host(rows, {count}, b), {15, 37},
                                  {table, accumulate});
        });
}

TEST_CASE("the gradient of a table takes millions of indices") {
  const auto card = emulated_card();
  constexpr Dim kCount = 32 * 65'536 + 1;
  const Tensor rows = ops::full({kCount}, 1, DType::i32, *card);
  CHECK(ops::to_host<double>(ops::scatter_add(ops::full({kCount, 1}, 1, DType::f32, *card), rows, {3, 1})) ==
        std::vector<double>{0, kCount, 0});
}

TEST_CASE("layer normalisation equals the CPU's for rows of any width") {
  for (const DType dtype : kFloating)
    for (const Dim columns : {3, 8, 255, 256, 257, 600, 1030, 2100}) {
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

TEST_CASE("layer normalisation's statistics are those of the sum as it is kept for backward") {
  const auto card = emulated_card();
  const auto cpu = open_cpu({.threads = 1});
  for (Backend* const b : {card.get(), cpu.get()})
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
  const auto card = emulated_card();
  for (const DType dtype : kFloating) {
    const LayerNorm options{.gamma = noise({1}, dtype, *card, 3), .beta = noise({1}, dtype, *card, 4), .epsilon = 1e-3};
    const Tensor x = noise({70, 1}, dtype, *card, 1), dy = noise({70, 1}, dtype, *card, 2);
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
  const auto card = emulated_card();
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
        CHECK(picked(*card) == picked(*cpu));
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
  const auto card = emulated_card();
  const std::vector<float> scores{1e30f, 1e30f, -1e30f, 80, 90, 100, -1e38f, -1e38f, -1e38f, 0, 1, NAN};
  const auto y = ops::to_host<float>(ops::softmax(ops::from_host(scores, {4, 3}, *card)));
  for (std::size_t row = 0; row < 3; ++row) CHECK(y[3 * row] + y[3 * row + 1] + y[3 * row + 2] == doctest::Approx(1.0));
  CHECK(std::isnan(y[9] + y[10] + y[11]));
}

namespace {

/// Masters, values and moments after three steps over segments of many chunks, one behind the other.
std::vector<double> three_steps(DType dtype, bool trust_ratio, bool overflow, Backend& b) {
  constexpr Dim kCount = 40000;
  const DType wide = compute_type(dtype);
  const Tensor masters = noise({kCount}, wide, b, 1), m = ops::full({kCount}, 0, wide, b),
               v = ops::full({kCount}, 0, wide, b);
  const Shape segment{5000};
  const Dim without_weights = 30000, without_gradient = 35000;  // where there are no norms to divide
  b.fill(masters.window(without_weights, segment), 0);
  const Tensor values = wide == dtype ? masters : ops::cast(masters, dtype);
  const std::vector<UpdateSegment> segments{
      {.begin = 0, .count = 20000, .weight_decay = 0.1, .trust_ratio = trust_ratio},
      {.begin = 20000, .count = 7},
      {.begin = 20016, .count = 9984, .trust_ratio = trust_ratio},
      {.begin = without_weights, .count = 5000, .trust_ratio = trust_ratio},
      {.begin = without_gradient, .count = 5000, .trust_ratio = trust_ratio}};
  const Tensor state = ops::from_host(std::vector<double>{1024, 1, 0}, {3}, b);
  for (std::int64_t step = 1; step <= 3; ++step) {
    const Tensor gradients = ops::scale(noise({kCount}, dtype, b, 10 + static_cast<std::uint64_t>(step)), 64);
    b.fill(gradients.window(without_gradient, segment), 0);
    if (overflow && step == 2) b.fill(gradients.window(100, {1}), INFINITY);
    b.update({masters, values, gradients, m, v},
             {.learning_rate = 1e-2,
              .bias_correction = true,
              .step = step,
              .clip_norm = 1,
              .gradient_norm = ops::norm(gradients),
              .loss_scale = {.state = state, .growth_interval = 2}},
             segments);
  }
  std::vector<double> all;
  for (const Tensor& part : {masters, values, m, v, state})
    for (const double x : ops::to_host<double>(part)) all.push_back(x);
  return all;
}

}  // namespace

TEST_CASE("optimizer steps equal the CPU's: AdamW and LAMB, clipped, with a loss scale, and one step that overflows") {
  const auto card = emulated_card();
  const auto cpu = open_cpu({.threads = 1});
  for (const DType dtype : kFloating)
    for (const bool trust_ratio : {false, true})
      for (const bool overflow : {false, true}) {
        CAPTURE(name_of(dtype));
        CAPTURE(trust_ratio);
        const auto got = three_steps(dtype, trust_ratio, overflow, *card),
                   expected = three_steps(dtype, trust_ratio, overflow, *cpu);
        const std::vector<double> states(got.end() - 3, got.end()), expected_states(expected.end() - 3, expected.end());
        CHECK(states == expected_states);
        CHECK(distance({got.begin(), got.end() - 3}, {expected.begin(), expected.end() - 3}) <=
              (dtype == DType::f64   ? 1e-12
               : dtype == DType::f32 ? 1e-6
                                     : 1e-4));
      }
}

TEST_CASE("a staging buffer is filled again only when its copy has ended") {
  const auto card = emulated_card();
  std::vector<Tensor> tensors;
  std::vector<std::vector<std::int32_t>> values;
  const std::int64_t before = cuda::emulation::synchronizations();
  for (int i = 0; i < 100; ++i) {  // more than there are buffers, and nothing between that would end a copy
    values.emplace_back(100, i);
    tensors.push_back(ops::from_host(values.back(), {100}, *card));
    if (i < 30) CHECK(cuda::emulation::synchronizations() == before);  // the batches of a few steps
  }
  CHECK(cuda::emulation::synchronizations() > before);
  for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(ops::to_host<std::int32_t>(tensors[i]) == values[i]);
}

TEST_CASE("columns of minus infinity before the first number have no share in a softmax") {
  const auto card = emulated_card();
  std::vector<double> logits(2 * 300, -std::numeric_limits<double>::infinity());
  for (int i = 0; i < 300; ++i) logits[static_cast<std::size_t>(300 + i)] = i < 8 || i > 250 ? -INFINITY : 0.01 * i;
  logits[17] = 3;
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor x = ops::cast(ops::from_host(logits, {2, 300}, *card), dtype);
    const Tensor y({2, 300}, dtype, *card), log_sum({2}, dtype, *card), loss({1}, dtype, *card);
    card->softmax(x, y);
    card->cross_entropy(x, ops::from_host(std::vector<std::int32_t>{17, 250}, {2}, *card), 1, log_sum, loss);
    const auto p = ops::to_host<double>(y);
    double sum = 0;
    for (int i = 8; i <= 250; ++i) sum += std::exp(0.01 * i - 2.5);
    CHECK(p[17] == doctest::Approx(1));
    CHECK(p[0] == 0);
    CHECK(p[300 + 250] == doctest::Approx(1 / sum));
    CHECK(ops::item(loss) == doctest::Approx(std::log(sum)).epsilon(1e-6));
  }
}

TEST_CASE("what is larger than a staging buffer arrives whole") {
  const auto card = emulated_card();
  std::vector<std::int32_t> values(3'000'001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 2654435761u);
  const Tensor on_card = ops::from_host(values, {static_cast<Dim>(values.size())}, *card);
  CHECK(ops::to_host<std::int32_t>(on_card) == values);
}

TEST_CASE("an allocation that finds memory when the pool gives back what it keeps is no error") {
  const auto card = emulated_card();
  cuda::emulation::fragment_memory();
  CHECK_NOTHROW(Tensor({1000}, DType::u8, *card));
}

TEST_CASE("a card that is full says what was needed and what is in use, and goes on when memory is freed") {
  const auto card = emulated_card();
  cuda::emulation::limit_memory(1 << 20);
  const std::size_t before = card->memory().in_use;
  {
    const Tensor most({900'000}, DType::u8, *card);
    CHECK(card->memory().in_use == before + 900'000);
    CHECK_THROWS_WITH_AS(ops::full({200'000}, 1, DType::u8, *card),
                         doctest::Contains("out of memory: full: needed 200000 bytes, in use 900000 bytes of 1048576"),
                         Error);
  }
  CHECK(card->memory().in_use == before);
  CHECK_NOTHROW(Tensor({200'000}, DType::u8, *card));
  cuda::emulation::limit_memory(std::size_t{16} << 30);
}
