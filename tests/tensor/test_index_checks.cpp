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
  CHECK_THROWS_WITH(ops::slice(Tensor{}, 0, 0, 1), doctest::Contains("slice: x has no value; hint: "));
  CHECK_THROWS_WITH(ops::sum_to(Tensor{}, {1}), doctest::Contains("sum_to: x has no value; hint: "));
  CHECK_THROWS_WITH(ops::copy_into(ops::sum(x), Tensor{}), doctest::Contains("copy: out has no value; hint: "));
}

TEST_CASE("an op whose one tensor has no value says which op it was") {
  const auto refuses = [](const auto& op, const std::string& name) {
    INFO(name);
    CHECK_THROWS_WITH_AS(op(Tensor{}),
                         doctest::Contains((name + ": its input has no value; hint: a layer has parameters").c_str()),
                         Error);
  };
  refuses([](const Tensor& x) { ops::scale(x, -0.3); }, "scale");
  refuses([](const Tensor& x) { ops::sum(x); }, "sum");
  refuses([](const Tensor& x) { ops::norm(x); }, "norm");
  refuses([](const Tensor& x) { ops::copy(x); }, "copy");
  refuses([](const Tensor& x) { ops::softmax(x); }, "softmax");
  refuses([](const Tensor& x) { ops::argmax(x); }, "argmax");
  refuses([](const Tensor& x) { ops::expand(x, 1, {3}, DType::f32); }, "expand");
  refuses([](const Tensor& x) { ops::slice_backward(x, {3}, 0, 1); }, "slice_backward");
  refuses([](const Tensor& x) { ops::unary(Unary::identity, x); }, "identity");
  refuses([](const Tensor& x) { ops::unary(Unary::gelu_tanh, x); }, "gelu_tanh");
  const auto backend = open_cpu({.threads = 1});
  const Tensor keys = ops::full({1}, 0, DType::i64, *backend);
  refuses([&](const Tensor& x) { ops::dropout(x, {.threshold = 1, .row_keys = keys}); }, "dropout");
}

TEST_CASE("the backend of a tensor without a value is an error and no crash") {
  CHECK_THROWS_WITH_AS(static_cast<void>(Tensor{}.backend()), doctest::Contains("tensor: x has no value; hint: "),
                       Error);
  CHECK_THROWS_WITH_AS(ops::first_non_finite(Tensor{}), doctest::Contains("x has no value; hint: "), Error);
  CHECK_THROWS_WITH_AS(ops::fill(Tensor{}, 1), doctest::Contains("x has no value; hint: "), Error);
}
