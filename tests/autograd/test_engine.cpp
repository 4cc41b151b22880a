// The engine: how gradients travel, and what it does with graphs that are deep, shared, or wrong.
#include <doctest/doctest.h>

#include "autograd/check_finite.h"
#include "autograd/ops.h"
#include "autograd/wanted.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

Variable leaf(const std::vector<double>& values, Backend& backend, bool requires_grad = true) {
  return Variable(ops::from_host(values, {static_cast<Dim>(values.size())}, backend), requires_grad);
}

}  // namespace

TEST_CASE("dropping a deep graph does not overflow the stack") {
  const auto backend = open_cpu({.threads = 1});
  Variable y = leaf({1}, *backend);
  for (int i = 0; i < 500'000; ++i) y = scale(y, 1.0);
}

TEST_CASE("dropping a result leaves what it was computed from, which can still be differentiated") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({3}, *backend);
  const Variable square = mul(x, x);
  { const Variable dropped = scale(scale(square, 2), 2); }
  backward(square);
  CHECK(ops::item(x.grad()) == 6.0);
}

TEST_CASE("a constant has no gradient, and zero_grad() of it does nothing") {
  const auto backend = open_cpu({.threads = 1});
  Variable constant = leaf({3}, *backend, false);
  constant.zero_grad();
  CHECK_FALSE(constant.grad());
}

TEST_CASE("a deep chain is walked without recursion and all its memory is given back") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1}, *backend);
  {
    Variable y = x;
    for (int i = 0; i < 500'000; ++i) y = scale(y, 1.0);
    backward(y);
  }
  CHECK(ops::item(x.grad()) == 1.0);
  CHECK(backend->memory().in_use == 2 * 64);  // x and its gradient
}

TEST_CASE("a value used several times gets the sum of its gradients and backward adds to what is there") {
  const auto backend = open_cpu({.threads = 1});
  Variable x = leaf({3}, *backend);
  for (int pass = 1; pass <= 2; ++pass) {
    const Variable square = mul(x, x);
    backward(sum(add(mul(square, x), square)));  // x³ + x²: 3x² + 2x = 33
    CHECK(ops::item(x.grad()) == 33.0 * pass);
  }
  x.zero_grad();
  CHECK_FALSE(x.grad());
}

TEST_CASE("a leaf is done once and when every op that used it has run and before leaves further down") {
  const auto backend = open_cpu({.threads = 1});
  const Variable shared = leaf({2}, *backend), first = leaf({3}, *backend), last = leaf({5}, *backend);
  // `shared` is used first and last, `first` and `last` once.
  const Variable y = mul(mul(mul(shared, first), last), shared);
  std::vector<std::pair<const GradientSlot*, double>> done;
  backward(sum(y), {}, [&](const GradientSlot& slot) { done.emplace_back(&slot, ops::item(slot.gradient)); });
  REQUIRE(done.size() == 3);
  CHECK(done[0] == std::pair<const GradientSlot*, double>{last.slot().get(), 12});
  CHECK(done[1] == std::pair<const GradientSlot*, double>{first.slot().get(), 20});
  CHECK(done[2] == std::pair<const GradientSlot*, double>{shared.slot().get(), 60});
}

TEST_CASE("under NoGrad nothing is recorded and nothing is kept") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1, 2}, *backend);
  const NoGrad guard;
  CHECK_FALSE(mul(x, x).requires_grad());
  CHECK(backend->memory().in_use == 64);
}

TEST_CASE("a buffer is overwritten by the first writer of a pass and added to by the next") {
  const auto backend = open_cpu({.threads = 1});
  const Variable w(ops::from_host(std::vector<double>{1, 2, 3, 4}, {2, 2}, *backend), true);
  const Tensor buffer = ops::full({2, 2}, 1e9, DType::f64, *backend);  // what an earlier step left
  w.slot()->buffer = buffer;
  const Variable x(ops::from_host(std::vector<double>{1, 0}, {1, 2}, *backend));
  backward(sum(matmul(matmul(x, w), w)));  // both products write dw
  CHECK(w.grad().same_memory(buffer));
  CHECK(ops::to_host<double>(buffer) == std::vector<double>{4, 8, 2, 2});  // x·w·w·1: by hand
}

TEST_CASE("an op that returns too few gradients or one of another shape or type is named") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1, 2}, *backend);
  const Tensor y = ops::full({1}, 0, DType::f64, *backend);
  const Variable few = record("too_few", y, {x}, [](const Tensor&, Wanted&) { return Grads{}; });
  CHECK_THROWS_WITH_AS(backward(few), "too_few: backward: expected 1 gradients, one for each input, got 0", Error);
  const Variable wrong = record("wrong_shape", y, {x}, [](const Tensor& dy, Wanted&) { return Grads{dy}; });
  CHECK_THROWS_WITH_AS(backward(wrong),
                       "wrong_shape: backward: expected gradient 0 to be f64 [2], as its input is, got f64 [1]", Error);
  const Variable narrow = record(
      "wrong_type", y, {x}, [&](const Tensor&, Wanted&) { return Grads{ops::full({2}, 1, DType::f32, *backend)}; });
  CHECK_THROWS_WITH_AS(backward(narrow),
                       "wrong_type: backward: expected gradient 0 to be f64 [2], as its input is, got f32 [2]", Error);
  const Variable none = record("none", y, {x}, [](const Tensor&, Wanted&) { return Grads(1); });
  CHECK_THROWS_WITH_AS(backward(none), "none: backward: expected a gradient for input 0, got an empty tensor", Error);
}

TEST_CASE("backward says what a loss must be") {
  const auto backend = open_cpu({.threads = 1});
  CHECK_THROWS_WITH_AS(backward(leaf({1, 2}, *backend)),
                       "backward: expected a loss of one element, got [2]; hint: give backward() its sum() or mean()",
                       Error);
  CHECK_THROWS_WITH_AS(backward(leaf({1}, *backend, false)),
                       "backward: expected a loss that depends on a value that wants a gradient, got none; hint: "
                       "Variable(tensor, /*requires_grad=*/true), and no NoGrad while it is computed",
                       Error);
  CHECK_THROWS_WITH_AS(backward(leaf({1}, *backend), ops::full({1}, 1, DType::f32, *backend)),
                       "backward: expected a gradient of the loss of f64 [1], as the loss is, got f32 [1]", Error);
}

TEST_CASE("a value that is written in place after an op used it is refused in backward") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({3}, *backend);
  const Tensor one = ops::full({1}, 1, DType::f64, *backend);
  const Variable square = mul(x, x);
  ops::add_into(one, x.value());
  CHECK_THROWS_WITH_AS(
      backward(square),
      "mul: backward: expected the values that the op used, but the memory of input 0 was written in place since; "
      "hint: make a new tensor, or write after backward()",
      Error);
  const Variable y = tanh(x);
  ops::copy_into(one, y.value());
  CHECK_THROWS_WITH_AS(
      backward(y),
      "tanh: backward: expected the values that the op used, but the memory of its result was written in place "
      "since; hint: make a new tensor, or write after backward()",
      Error);
  const Variable third = mul(x, x);
  ops::fill(x.value(), 2);
  CHECK_THROWS_AS(backward(third), Error);
  const Variable again = mul(x, x);
  backward(again);
  ops::add_into(one, x.value());  // after backward it is not read again
  CHECK(ops::item(x.grad()) == 4.0);
}

TEST_CASE("a value that an op was given as the place of its result is refused in backward") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x(ops::full({2, 2}, 3, DType::f64, *backend), true),
      row(ops::full({2}, 3, DType::f64, *backend), true);
  const Tensor two = ops::full({2, 2}, 2, DType::f64, *backend), rows = ops::full({2}, 0, DType::i32, *backend);
  const auto refused = [](const Variable& used, const std::function<void(const Tensor&)>& write) {
    const Variable square = mul(used, used);
    write(used.value());
    CHECK_THROWS_WITH_AS(
        backward(sum(square)),
        "mul: backward: expected the values that the op used, but the memory of input 0 was written in place since; "
        "hint: make a new tensor, or write after backward()",
        Error);
  };
  refused(x, [&](const Tensor& out) { ops::matmul(two, two, {.into = {out}}); });
  refused(x, [&](const Tensor& out) { ops::matmul(two, two, {.into = {out, true}}); });
  refused(x, [&](const Tensor& out) { ops::scatter_add(two, rows, {2, 2}, {out}); });
  refused(row, [&](const Tensor& out) { ops::sum_to(two, {2}, out); });
  refused(row, [&](const Tensor& out) { ops::unary_backward(Unary::tanh, two, two, out); });
  const LayerNorm options{.gamma = ops::full({2}, 1, DType::f64, *backend),
                          .beta = ops::full({2}, 0, DType::f64, *backend)};
  const ops::Normalized saved = ops::layer_norm(two, {}, options);
  refused(row, [&](const Tensor& out) { ops::layer_norm_backward(saved, options, two, out); });
  refused(row, [&](const Tensor& out) { ops::layer_norm_backward(saved, options, two, {}, out); });
}

TEST_CASE("logits of a cross entropy may be used by other ops too, whose gradients are added to where the logits lay") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x(ops::full({2, 2}, 0, DType::f64, *backend), true);
  const Tensor labels = ops::full({2}, 0, DType::i32, *backend), first = ops::full({1}, 0, DType::i32, *backend);
  const auto loss = [&] {
    const Variable logits = scale(x, 2);
    const Variable rows = add(sum(gather_rows(logits, first)), sum(gather_rows(logits, first)));
    return add(rows, softmax_cross_entropy(logits, labels, 1));
  };
  backward(loss());
  // Each row of logits has softmax − one-hot = (−½, ½), and two sums add 2 to the first; that of x = logits / 2 is
  // twice it.
  CHECK(ops::to_host<double>(x.grad()) == std::vector<double>{3, 5, -1, 1});
}

TEST_CASE("a variable without a value says how a parameter gets one") {
  CHECK_THROWS_WITH_AS(tanh(Variable()),
                       "variable: expected a value, got none; hint: a layer's parameters have no memory; make a "
                       "ParameterSet of the model before you use it",
                       Error);
}

TEST_CASE("CheckFinite names the op that first made a number that is none") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1e200, 1}, *backend);
  mul(mul(x, x), x);  // silent without it
  const CheckFinite guard;
  CHECK_THROWS_WITH_AS(mul(x, x), "op mul: forward: element 0 of [2]: expected a finite number, got inf", Error);
}

TEST_CASE("a scale of the loss scales every gradient") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({5}, *backend);
  backward(mul(x, x), ops::full({1}, 1024, DType::f64, *backend));
  CHECK(ops::item(x.grad()) == 10240.0);
}

TEST_CASE("a graph that an earlier backward took apart is refused instead of losing gradients") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({3}, *backend);
  const Variable square = mul(x, x);
  backward(square);
  CHECK_THROWS_WITH_AS(backward(square),
                       "backward: an earlier backward has taken this graph apart; hint: compute it again", Error);
  CHECK_THROWS_AS(backward(mul(square, x)), Error);
  CHECK(ops::item(x.grad()) == 6.0);
}

TEST_CASE("a leaf may be the loss and backward adds to its gradient too") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({3}, *backend);
  backward(mul(x, x));
  backward(x);
  CHECK(ops::item(x.grad()) == 7.0);
  x.slot()->buffer = ops::full({1}, 1e9, DType::f64, *backend);
  backward(x, ops::full({1}, 2, DType::f64, *backend));
  backward(x, ops::full({1}, 3, DType::f64, *backend));
  CHECK(ops::item(x.grad()) == 5.0);
}

TEST_CASE("an intermediate gradient that is held elsewhere is never written in place") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x(ops::from_host(std::vector<double>{1, 2, 3, 4}, {2, 2}, *backend), true);
  const Variable one(ops::from_host(std::vector<double>{1, 0, 0, 1}, {2, 2}, *backend));
  const Variable y = scale(x, 1), z = scale(x, 10);
  // add hands the same dy to y and z; the product then adds its own share to y's, which must not reach z's.
  backward(sum(add(add(y, z), matmul(y, one))));
  CHECK(ops::to_host<double>(x.grad()) == std::vector<double>{12, 12, 12, 12});
}

TEST_CASE("into() adds to an intermediate gradient that only the slot holds") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1}, *backend);
  const Variable y = scale(x, 1);
  int writers = 0;
  bool accumulated = false;
  const auto writer = [&](const Tensor& dy, Wanted& wanted) {
    const ops::Into into = wanted.into(0);
    accumulated = into.accumulate;
    ++writers;
    if (!into.out) return Grads{ops::copy(dy)};
    ops::add_into(dy, into.out);
    return Grads{into.out};
  };
  const Variable a = record("writer", ops::copy(y.value()), {y}, writer),
                 b = record("writer", ops::copy(y.value()), {y}, writer);
  backward(add(a, b));
  CHECK(writers == 2);
  CHECK(accumulated);
  CHECK(ops::item(x.grad()) == 2.0);
}

TEST_CASE("an op that asks into() and then writes elsewhere is named") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1}, *backend);
  x.slot()->buffer = ops::full({1}, 0, DType::f64, *backend);
  const Variable y = record("astray", ops::copy(x.value()), {x}, [](const Tensor& dy, Wanted& wanted) {
    wanted.into(0);
    return Grads{ops::copy(dy)};
  });
  CHECK_THROWS_WITH_AS(
      backward(y), "astray: backward: expected gradient 0 in the memory that Wanted gave for it, got another tensor",
      Error);
}

TEST_CASE("a leaf's gradient is its own memory and not what the op gave") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1, 2}, *backend), y = leaf({3, 4}, *backend);
  backward(sum(add(x, y)));  // add gives the same tensor to both
  CHECK_FALSE(x.grad().same_memory(y.grad()));
  CHECK(x.grad().unique() == false);  // the slot's and the one just asked for
}

TEST_CASE("CheckFinite names the op whose backward made a number that is none") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({1e-200, 1}, *backend);
  const Variable y = sum(scale(scale(x, 1e200), 1e200));
  const CheckFinite guard;
  CHECK_THROWS_WITH_AS(backward(y), "op scale: backward: element 0 of [2]: expected a finite number, got inf", Error);
}

TEST_CASE("a cast rounds forward and gives the gradient in the type of its input") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = leaf({0.1, 1}, *backend);
  const Variable y = cast(x, DType::f32);
  CHECK(y.value().dtype() == DType::f32);
  CHECK(ops::to_host<double>(y.value())[0] == static_cast<double>(0.1f));
  backward(sum(scale(y, 0.3)));
  CHECK(x.grad().dtype() == DType::f64);
  CHECK(ops::to_host<double>(x.grad())[0] == static_cast<double>(0.3f));
}

TEST_CASE("a dense layer takes rows and says so of anything else") {
  const auto backend = open_cpu({.threads = 1});
  const auto of = [&](const Shape& shape) { return Variable(ops::full(shape, 1, DType::f32, *backend)); };
  CHECK_THROWS_WITH_AS(linear(of({2, 3, 4}), of({5, 4}), of({5})),
                       "linear: expected x of [rows, in], got [2, 3, 4]; hint: reshape() it", Error);
}

TEST_CASE(
    "a bias before an activation gets its gradient when nothing else wants one, and the sum of those of two uses") {
  const auto backend = open_cpu({.threads = 1});
  const auto of = [&](const Shape& shape, double step) {
    std::vector<double> values(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = step * static_cast<double>(i) - 0.4;
    return ops::from_host(values, shape, *backend);
  };
  const Variable x(of({3, 2}, 0.2)), other(of({5, 2}, 0.1)), w(of({4, 2}, 0.15)), factors(of({4}, 0.3));
  const auto gradient = [&](bool at_once, bool twice) {
    const Variable b(of({4}, 0.1), true);
    const auto layer = [&](const Variable& rows) {
      return at_once ? linear(rows, w, b, Activation::tanh) : tanh(linear(rows, w, b));
    };
    Variable loss = sum(mul(layer(x), factors));
    if (twice) loss = add(loss, sum(mul(layer(other), factors)));
    backward(loss);
    return ops::to_host<double>(b.grad());
  };
  for (const bool twice : {false, true}) {
    CAPTURE(twice);
    const std::vector<double> expected = gradient(false, twice), got = gradient(true, twice);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-13));
  }
}
