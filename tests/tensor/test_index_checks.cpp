// What chooses rows, classes and places is checked where it is read, and that tensors fit together before.
#include <limits>

#include "support/bad_indices.h"
#include "support/refusal.h"
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
  CHECK_THROWS_WITH(ops::fill(Tensor{}, 1), doctest::Contains("fill: out has no value; hint: "));
  CHECK_THROWS_WITH(ops::first_non_finite(Tensor{}), doctest::Contains("first_non_finite: x has no value; hint: "));
}

TEST_CASE("a shape has no more elements than can be counted") {
  constexpr Dim kMany = Dim{1} << 32;
  CHECK(Shape{kMany, kMany / 64}.elements() == Dim{1} << 58);
  CHECK(Shape{kMany, 0, kMany / 64}.elements() == 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(Shape{kMany, kMany}),
                       doctest::Contains("shape: expected dimensions whose product is below 2^59, got [4294967296, "),
                       Error);
  CHECK_THROWS_AS(static_cast<void>(Shape{kMany, 1}.with(1, kMany)), Error);
  CHECK_THROWS_AS(static_cast<void>(Shape{kMany, kMany / 32}), Error);  // its bytes would be 2^64 in f64
  CHECK_THROWS_AS(static_cast<void>(Shape{0, kMany, kMany}), Error);    // its rows could not be counted
  CHECK_THROWS_AS(static_cast<void>(Shape{kMany, kMany, 0}), Error);
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
}

TEST_CASE("memory that cannot be had is said to be for the op that asks for it") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor one = ops::full({1}, 1, DType::f64, *backend);
  const Shape all{Dim{1} << 45};
  CHECK_THROWS_WITH_AS(ops::expand(one, 1, all, DType::f64), doctest::Contains("out of memory: expand: needed "),
                       Error);
  CHECK_THROWS_WITH_AS(ops::full(all, 1, DType::f64, *backend), doctest::Contains("out of memory: full: needed "),
                       Error);
}

TEST_CASE("a cast to the type that a tensor has is the tensor itself") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = ops::full({2, 2}, 1, DType::bf16, *backend);
  CHECK(ops::cast(x, DType::bf16).same_memory(x));
  CHECK_FALSE(ops::cast(x, DType::f32).same_memory(x));
}

namespace {

/// Whether `op` is refused in a message that begins with `name`.
template <class Op>
void refuses(const std::string& name, const Op& op) {
  const std::string message = support::refusal(Failure::bug, op);
  CHECK_MESSAGE(message.starts_with(name + ": "), name << " said: " << message);
}

struct Ones {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});

  Tensor operator()(const Shape& shape, DType dtype = DType::f32) const { return ops::full(shape, 1, dtype, *backend); }
};

}  // namespace

TEST_CASE("a tensor without a value has no elements, so that no op takes it for a single number") {
  const Ones of;
  CHECK(Tensor{}.elements() == 0);
  CHECK(Tensor{}.bytes() == 0);
  CHECK(Tensor{}.span<float>().empty());
  const Tensor x = of({1, 2}), label = of({1}, DType::i32), one = of({1}), row = of({2});
  refuses("cross_entropy_backward", [&] { ops::cross_entropy_backward(x, label, 1, one, {}); });
  refuses("cross_entropy_backward", [&] { ops::cross_entropy_backward(x, label, 1, {}, one); });
  refuses("point_loss_backward", [&] { ops::point_loss_backward(PointLoss::squared_error, x, x, 1, {}); });
  refuses("layer_norm_backward", [&] { ops::layer_norm_backward({x, x, {}}, {.gamma = row, .beta = row}, x); });
  refuses("add_into", [&] { ops::add_into(of({}), {}); });
}

TEST_CASE("elements that do not fit together are refused and not read beyond their end") {
  const Ones of;
  const Tensor x = of({2, 3}), f64 = of({2, 3}, DType::f64), other = of({2, 2});
  refuses("add", [&] { ops::binary(Binary::add, of({3}), of({3, 3})); });  // b has more axes
  refuses("add", [&] { ops::binary(Binary::add, of({4, 3}), of({2, 3})); });
  refuses("add", [&] { ops::binary(Binary::add, x, of({2, 3}, DType::bf16)); });
  for (const Tensor& wrong : {f64, other}) {
    refuses("unary_backward", [&] { ops::unary_backward(Unary::tanh, x, wrong); });
    refuses("unary_backward", [&] { ops::unary_backward(Unary::tanh, x, x, wrong); });  // the sum of its rows
    refuses("softmax_backward", [&] { ops::softmax_backward(x, wrong); });
    refuses("point_loss", [&] { ops::point_loss(PointLoss::squared_error, x, wrong, 1); });
    refuses("layer_norm", [&] { ops::layer_norm(x, wrong, {.gamma = of({3}), .beta = of({3})}); });
    refuses("matmul", [&] { ops::matmul(x, of({3, 3}), {.into = {wrong}}); });
    refuses("add_into", [&] { ops::add_into(wrong, x); });
  }
  for (const Dim no_last_axis : {2, 4, 6}) refuses("sum_to", [&] { ops::sum_to(x, {no_last_axis}); });
  refuses("sum_to", [&] { ops::sum_to(x, {0}); });
  const Tensor keys = of({2}, DType::i64);
  refuses("dropout", [&] { ops::dropout(of({3, 4}), {.threshold = 1, .row_keys = keys}); });
  refuses("dropout", [&] { ops::dropout(of({2, 4}), {.threshold = 1, .row_keys = of({2}, DType::i32)}); });
  refuses("dropout", [&] { ops::dropout(of({2, 4}), {.threshold = 65536, .row_keys = keys}); });
  CHECK(ops::dropout(x, {}).same_memory(x));  // which drops nothing
}

TEST_CASE("a part that is not within a tensor is refused") {
  const Ones of;
  const Tensor x = of({3, 2});
  refuses("rows", [&] { x.rows(2, 1); });
  refuses("rows", [&] { x.rows(0, 4); });
  refuses("rows", [&] { x.rows(-1, 1); });
  refuses("window", [&] { x.window(-1, {1}); });
  refuses("window", [&] { x.window(5, {2}); });
  refuses("window", [&] { x.window(std::numeric_limits<Dim>::max() - 3, {5}); });
  refuses("reshape", [&] { x.reshape({7}); });
  refuses("slice", [&] { ops::slice(x, 0, 1, 4); });
  refuses("slice", [&] { ops::slice(x, 0, 2, 1); });
  refuses("slice", [&] { ops::slice(x, 1, -1, 1); });
  refuses("slice_backward", [&] { ops::slice_backward(of({2, 2}), {3, 2}, 0, -1); });
  CHECK(x.window(4, {2}).elements() == 2);
  CHECK(x.rows(3, 3).elements() == 0);
}

TEST_CASE("a product whose operands do not fit together is refused") {
  const Ones of;
  const Tensor x = of({2, 3});
  refuses("matmul", [&] { ops::matmul(x, of({3, 2}, DType::f64)); });
  refuses("matmul", [&] { ops::matmul(x, of({3, 2, 1})); });
  refuses("linear", [&] { ops::linear(x, of({4, 5}), {}); });
  refuses("linear", [&] { ops::linear(x, of({4, 3}, DType::f64), {}); });
  refuses("linear", [&] { ops::linear(x, of({4, 3}), of({3})); });
  CHECK(ops::linear(of({3}), of({4, 3}), {}).shape() == Shape{4});  // a row alone has no leading axes
  refuses("gather", [&] { ops::gather(of({5, 3}), of({2, 2}, DType::i32)); });
  refuses("gather", [&] { ops::gather(of({5, 3}), of({2}, DType::i64)); });
  refuses("scatter_add", [&] { ops::scatter_add(of({4, 3}), of({5}, DType::i32), {5, 3}); });
  CHECK(ops::to_host<float>(ops::gather(of({5}), of({2}, DType::i32))) == std::vector<float>{1, 1});
}

TEST_CASE("attention and losses refuse what does not belong to each token or row") {
  const Ones of;
  const Tensor qkv = of({4, 12}), whole = testing::on_device({0, 4}, *of.backend);
  const auto refuses_to_attend = [&](const Attention& options) {
    refuses("attention", [&] { ops::attention(qkv, options); });
  };
  refuses_to_attend({.offsets = whole, .heads = 0, .longest = 4});
  refuses_to_attend({.offsets = whole, .heads = 3, .longest = 4});
  refuses_to_attend({.offsets = whole, .heads = 2, .longest = 5});
  refuses_to_attend({.offsets = testing::on_device({0}, *of.backend), .heads = 2, .longest = 4});
  const Attention all{.offsets = whole, .heads = 2, .longest = 4};
  for (const auto& [context, log_sum] : {std::pair(of({4, 5}), of({4, 2})), std::pair(of({4, 4}), of({4, 1}))})
    refuses("attention_backward", [&, &context = context, &log_sum = log_sum] {
      ops::attention_backward(qkv, all, {context, log_sum}, context);
    });
  const Tensor none = Tensor({0, 12}, DType::f32, *of.backend), start = testing::on_device({0}, *of.backend);
  CHECK(ops::attention(none, {.offsets = start, .heads = 2, .longest = 0}).context.shape() == Shape{0, 4});

  const Tensor logits = of({3, 2}), labels = of({3}, DType::i32), log_sum = of({3}), one = of({1});
  for (const Tensor& wrong : {of({2}, DType::i32), of({3}, DType::i64)}) {
    refuses("cross_entropy", [&] { ops::cross_entropy(logits, wrong, 1); });
    refuses("cross_entropy_backward", [&] { ops::cross_entropy_backward(logits, wrong, 1, log_sum, one); });
  }
  refuses("cross_entropy_backward", [&] { ops::cross_entropy_backward(logits, labels, 1, of({2}), one); });
  refuses("cross_entropy_backward", [&] { ops::cross_entropy_backward(logits, labels, 1, log_sum, of({3})); });
}

TEST_CASE("an op of several tensors says which one has no value") {
  const Ones of;
  const Tensor x = of({2, 2}), row = of({2}), rows = of({2}, DType::i32), none;
  const auto lacks = [](const std::string& what, const auto& op) {
    INFO(what);
    CHECK_THROWS_WITH_AS(op(), doctest::Contains((what + " has no value; hint: ").c_str()), Error);
  };
  lacks("cast: x", [&] { ops::cast(none, DType::f32); });
  lacks("mul: a", [&] { ops::binary(Binary::mul, none, x); });
  lacks("matmul: b", [&] { ops::matmul(x, none); });
  lacks("linear: x", [&] { ops::linear(none, x, none); });
  lacks("layer_norm: x", [&] { ops::layer_norm(none, none, {.gamma = row, .beta = row}); });
  lacks("layer_norm: gamma", [&] { ops::layer_norm(x, none, {.beta = row}); });
  lacks("layer_norm: beta", [&] { ops::layer_norm(x, none, {.gamma = row}); });
  lacks("gather: table", [&] { ops::gather(none, rows); });
  lacks("gather: rows", [&] { ops::gather(x, none); });
  lacks("attention: offsets", [&] { ops::attention(of({2, 3}), {.heads = 1, .longest = 2}); });
  lacks("cross_entropy: logits", [&] { ops::cross_entropy(none, rows, 1); });
  lacks("cross_entropy: labels", [&] { ops::cross_entropy(x, none, 1); });
}

TEST_CASE("what an op is given to go back is refused if it does not fit what came forward") {
  const Ones of;
  const Tensor x = of({2, 3}), row = of({3}), wrong = of({2, 4}), few_keys = of({1}, DType::i64);
  refuses("layer_norm", [&] {
    ops::layer_norm(x, {}, {.gamma = row, .beta = row, .dropout = {.threshold = 1, .row_keys = few_keys}});
  });
  refuses("layer_norm_backward", [&] {
    ops::layer_norm_backward({x, x, of({2, 2})}, {.gamma = row, .beta = row}, wrong);
  });
  refuses("layer_norm_backward", [&] {
    ops::layer_norm_backward({x, x, of({2, 2})}, {.gamma = of({2}), .beta = row}, x);
  });
  refuses("layer_norm_backward", [&] {
    ops::layer_norm_backward({x, x, of({2, 2}, DType::f64)}, {.gamma = row, .beta = row}, x);
  });
  refuses("point_loss_backward",
          [&] { ops::point_loss_backward(PointLoss::squared_error, x, x, 1, of({1}, DType::f64)); });
  const Tensor logits = of({3, 2}, DType::f16), labels = of({3}, DType::i32), half = of({3}, DType::f16);
  refuses("cross_entropy_backward", [&] { ops::cross_entropy_backward(logits, labels, 1, half, of({1})); });
  refuses("cross_entropy_backward",
          [&] { ops::cross_entropy_backward(logits, labels, 1, of({3}), of({1}, DType::f16)); });
  refuses("point_loss_backward", [&] { ops::point_loss_backward(PointLoss::squared_error, x, wrong, 1, of({1})); });
  refuses("scatter_add", [&] { ops::scatter_add(x, of({2}, DType::i64), {5, 3}); });
  const Tensor qkv = of({4, 12}), whole = testing::on_device({0, 4}, *of.backend);
  const ops::Attended saved{of({4, 4}), of({4, 2})};
  refuses("attention", [&] { ops::attention(qkv, {.offsets = of({2}, DType::i64), .heads = 2, .longest = 4}); });
  refuses("attention", [&] {
    ops::attention(qkv,
                   {.offsets = whole, .heads = 2, .longest = 4, .dropout = {.threshold = 1, .row_keys = few_keys}});
  });
  refuses("attention",
          [&] { ops::attention_backward(qkv, {.offsets = whole, .heads = 2, .longest = 5}, saved, saved.context); });
  refuses("attention_backward", [&] {
    ops::attention_backward(qkv, {.offsets = whole, .heads = 2, .longest = 4}, saved, of({4, 5}));
  });
  refuses("attention_backward", [&] {
    ops::attention_backward(qkv, {.offsets = whole, .heads = 2, .longest = 4}, {saved.context, of({4, 2}, DType::f64)},
                            saved.context);
  });
}
