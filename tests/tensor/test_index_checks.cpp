// What chooses rows, classes and places is checked where it is read.
#include "support/bad_indices.h"
#include "tensor/backends.h"

using namespace bertrand;

TEST_CASE("a number out of range is refused by op and index and value and range on the CPU") {
  for (const int threads : {1, 3}) testing::check_bad_indices(*open_cpu({.threads = threads}));
}

TEST_CASE("an op on a tensor without a value says so") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = ops::full({2, 2}, 1, DType::f32, *backend);
  CHECK_THROWS_WITH(ops::item(Tensor{}), doctest::Contains("item: x has no value; hint: "));
  CHECK_THROWS_WITH(ops::to_host<float>(Tensor{}), doctest::Contains("to_host: x has no value; hint: "));
  CHECK_THROWS_WITH(ops::linear(x, Tensor{}, Tensor{}), doctest::Contains("linear: the weight has no value; hint: "));
  CHECK_THROWS_WITH(ops::matmul(Tensor{}, x), doctest::Contains("matmul: a has no value; hint: "));
  CHECK_THROWS_WITH(ops::binary(Binary::div, x, Tensor{}), doctest::Contains("div: b has no value; hint: "));
}
