// What holds for every differentiable op, tested from one table (support/op_cases.h) on the CPU.
#include <doctest/doctest.h>

#include <fstream>
#include <numeric>
#include <regex>
#include <set>

#include "support/op_checks.h"
#include "support/paths.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;
using namespace bertrand::testing;

TEST_CASE("every op has the gradients that central differences say") {
  const auto backend = open_cpu({.threads = 2});
  for (const OpCase& c : op_cases()) check_gradients(c, *backend);
}

TEST_CASE("every op equals its formula and its meaning in plain ops") {
  const auto backend = open_cpu({.threads = 2});
  for (const OpCase& c : op_cases()) {
    CHECK_MESSAGE((c.formula || c.meaning), c.name() << " has no definition");
    check_definition(c, *backend);
  }
}

TEST_CASE("every op in f32 stays close to f64 forward and backward") {
  const auto backend = open_cpu({.threads = 2});
  for (const OpCase& c : op_cases()) check_against_f64(c, DType::f32, {.result = 1e-6, .gradient = 3e-6}, *backend);
}

// A result is rounded once, to 8 or 11 bits: by 2^-9 or 2^-12 at most, by a third of that in the mean. Gradients pass
// through results and, if an op is made of several, through intermediate tensors, which are rounded too.
TEST_CASE("every op in bf16 and f16 stays as close to f64 as their digits allow") {
  const auto backend = open_cpu({.threads = 2});
  for (const OpCase& c : op_cases()) {
    check_against_f64(c, DType::bf16, {.result = 4e-3, .gradient = 1e-2}, *backend);
    check_against_f64(c, DType::f16, {.result = 5e-4, .gradient = 1.3e-3}, *backend);
  }
}

TEST_CASE("every op leaves its inputs alone and gives only what is wanted and adds to what is there") {
  const auto backend = open_cpu({.threads = 2});
  for (const OpCase& c : op_cases()) check_in_graph(c, *backend);
}

TEST_CASE("every op has the same bits twice and for any number of threads and for every kernel set") {
#ifdef __SANITIZE_ADDRESS__
  const std::vector<int> numbers_of_threads{1, 3};  // what is looked for in this build is not the bits
#else
  const std::vector<int> numbers_of_threads{1, 3, 8};
#endif
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const OpCase& c : op_cases()) {
      Arrays first;
      for (const std::string& kernels : runnable_cpu_kernels())
        for (const int threads : numbers_of_threads) {
          const auto backend = open_cpu({.threads = threads, .kernels = kernels});
          const auto result = run_both_ways(c, dtype, *backend);
          if (first.empty()) first = result;
          CHECK_MESSAGE(result == first,
                        c.name() << " in " << name_of(dtype) << " with " << threads << " threads of " << kernels);
        }
    }
}

TEST_CASE("a sequence has the same bits alone and in company with dropout") {
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
    const Variable context =
        attention(qkv, {.offsets = ops::from_host(offsets, {static_cast<Dim>(offsets.size())}, *backend),
                        .heads = 3,
                        .longest = longest,
                        .dropout = dropout});
    const Variable gamma(ops::full({kHidden}, 0.7, DType::f32, *backend)),
        beta(ops::full({kHidden}, 0.1, DType::f32, *backend));
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
  for (const OpCase& c : all_op_cases()) tabled.insert(c.op);
  CHECK(declared.size() >= 20);
  for (const std::string& op : declared)
    CHECK_MESSAGE(tabled.contains(op), op << " is declared in autograd/ops.h and has no row in "
                                             "tests/support/op_cases_*.cpp; hint: docs/adding_an_op.md");
  for (const std::string& op : tabled)
    CHECK_MESSAGE(declared.contains(op), op << " has a row in tests/support/op_cases_*.cpp and is not declared in "
                                               "autograd/ops.h");
}
