// What holds for every differentiable op, tested from one table (op_cases).
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <regex>
#include <set>

#include "autograd/op_cases.h"
#include "support/paths.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;
using namespace bertrand::testing;

TEST_CASE("every gradient entry of every op equals a central difference") {
  const auto backend = open_cpu({.threads = 2});
  constexpr double kStep = 1e-5, kTolerance = 1e-7;
  for (const OpCase& c : op_cases()) {
    const Inputs inputs = make_inputs(c, DType::f64, *backend);
    backward(project(c.run(inputs, *backend)));
    const auto loss = [&] {
      const NoGrad guard;
      return ops::item(project(c.run(inputs, *backend)).value());
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::span<double> x = inputs[i].value().span<double>();
      const std::vector<double> gradient = ops::to_host<double>(inputs[i].grad());
      std::size_t wrong = 0;
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double saved = x[j];
        x[j] = saved + kStep;
        const double above = loss();
        x[j] = saved - kStep;
        const double below = loss();
        x[j] = saved;
        const double numeric = (above - below) / (2 * kStep);
        const double error = std::abs(numeric - gradient[j]) / std::max({std::abs(numeric), std::abs(gradient[j]), 1.0});
        if (error > kTolerance && wrong++ < 3)
          FAIL_CHECK(c.name() << ": d/d input " << i << " entry " << j << ": backward says " << gradient[j] << ", differences say " << numeric);
      }
      CHECK_MESSAGE(wrong == 0, c.name() << ": " << wrong << " of " << x.size() << " entries of input " << i << " are wrong");
    }
  }
}

namespace {

/// ‖a − b‖² / ‖b‖²
double relative_square_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return difference / size;
}

}  // namespace

TEST_CASE("f32 stays close to f64, forward and backward") {
  const auto backend = open_cpu({.threads = 2});
  for (const OpCase& c : op_cases()) {
    const auto wide = run_both_ways(c, DType::f64, *backend), narrow = run_both_ways(c, DType::f32, *backend);
    for (std::size_t i = 0; i < wide.size(); ++i) {
      INFO(c.name() << (i == 0 ? ", result" : ", gradient of input ") << (i == 0 ? "" : std::to_string(i - 1)));
      CHECK(relative_square_error(narrow[i], wide[i]) <= (i == 0 ? 1e-12 : 1e-11));
    }
  }
}

TEST_CASE("a fused op equals what it means") {
  const auto backend = open_cpu({.threads = 2});
  int fused = 0;
  for (const OpCase& c : op_cases()) {
    if (!c.meaning) continue;
    ++fused;
    const auto op = run_both_ways(c, DType::f64, *backend), meaning = run_both_ways(c, DType::f64, *backend, true);
    REQUIRE(op.size() == meaning.size());
    for (std::size_t i = 0; i < op.size(); ++i) {
      INFO(c.name() << ", output " << i);
      CHECK(relative_square_error(op[i], meaning[i]) <= 1e-24);
    }
  }
  CHECK(fused >= 8);
}

TEST_CASE("every op has the same bits for 1, 2, 3 and 8 threads and for every kernel set, and twice") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const OpCase& c : op_cases()) {
      std::vector<std::vector<double>> first;
      for (const std::string& kernels : runnable_cpu_kernels())
        for (const int threads : {1, 1, 2, 3, 8}) {
          const auto backend = open_cpu({.threads = threads, .kernels = kernels});
          const auto result = run_both_ways(c, dtype, *backend);
          if (first.empty()) first = result;
          CHECK_MESSAGE(result == first, c.name() << " in " << name_of(dtype) << " with " << threads << " threads of " << kernels);
        }
    }
}

TEST_CASE("a sequence has the same bits alone and in company, forward and backward, with dropout") {
  const auto backend = open_cpu({.threads = 3});
  const std::vector<std::int32_t> lengths{3, 64, 1, 129, 20};
  constexpr Dim kHidden = 24;
  const Dim tokens = std::accumulate(lengths.begin(), lengths.end(), Dim{0});
  Random random(1);
  std::vector<float> values(static_cast<std::size_t>(tokens * 3 * kHidden));
  for (float& v : values) v = static_cast<float>(2 * random.uniform() - 1);
  std::vector<std::int64_t> keys(static_cast<std::size_t>(tokens));
  std::iota(keys.begin(), keys.end(), 0);

  /// Attention and a normalised row-wise layer of rows [begin, end), which hold the sequences of `offsets`.
  const auto run = [&](Dim begin, Dim end, const std::vector<std::int32_t>& offsets, Dim longest) {
    const std::vector<float> part(values.begin() + begin * 3 * kHidden, values.begin() + end * 3 * kHidden);
    const std::vector<std::int64_t> part_keys(keys.begin() + begin, keys.begin() + end);
    const Variable qkv(ops::from_host(part, {end - begin, 3 * kHidden}, *backend), true);
    const Dropout dropout{.threshold = 6554, .key = 3, .row_keys = ops::from_host(part_keys, {end - begin}, *backend)};
    const Variable context = attention(qkv, {.offsets = ops::from_host(offsets, {static_cast<Dim>(offsets.size())}, *backend), .heads = 3, .longest = longest, .dropout = dropout});
    const Variable gamma(ops::full({kHidden}, 0.7, DType::f32, *backend)), beta(ops::full({kHidden}, 0.1, DType::f32, *backend));
    const Variable y = dropout_add_layer_norm(tanh(context), context, gamma, beta, {.dropout = dropout});
    std::vector<float> result = ops::to_host<float>(y.value());
    backward(sum(mul(y, y)));
    const std::vector<float> gradient = ops::to_host<float>(qkv.grad());
    return std::pair(result, gradient);
  };
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t length : lengths) offsets.push_back(offsets.back() + length);
  const auto together = run(0, tokens, offsets, 129);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const auto alone = run(offsets[s], offsets[s + 1], {0, lengths[s]}, lengths[s]);
    INFO("sequence " << s);
    CHECK(std::equal(alone.first.begin(), alone.first.end(), together.first.begin() + offsets[s] * kHidden));
    CHECK(std::equal(alone.second.begin(), alone.second.end(), together.second.begin() + offsets[s] * 3 * kHidden));
  }
}

TEST_CASE("every op that autograd/ops.h declares has a row in the table") {
  std::ifstream header(paths::source + "/autograd/ops.h");
  REQUIRE(header);
  const std::string text((std::istreambuf_iterator<char>(header)), {});
  const std::regex declaration(R"(\nVariable (\w+)\()");
  std::set<std::string> declared, tabled;
  for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) declared.insert((*it)[1]);
  for (const OpCase& c : op_cases()) tabled.insert(c.op);
  CHECK(declared.size() >= 20);
  CHECK(declared == tabled);
}
