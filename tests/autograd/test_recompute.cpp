// Activations that are computed again: the same bits, less memory.
#include <doctest/doctest.h>

#include "autograd/engine.h"
#include "autograd/gradient_check.h"
#include "autograd/ops.h"
#include "autograd/recompute.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

Variable drawn(const Shape& shape, std::uint64_t seed, Backend& backend, bool requires_grad = true) {
  Random random(seed);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (double& value : values) value = random.uniform() - 0.5;
  return Variable(ops::from_host(values, shape, backend), requires_grad);
}

/// A part with a residual, dropout and two weights.
Variable part(const Variable& x, const Variable& w, const Variable& b, const Tensor& row_keys) {
  const Variable h = dropout(linear(x, w, b, Activation::gelu), {.threshold = 20000, .key = 7, .row_keys = row_keys});
  return add(mul(h, h), x);
}

struct Gradients {
  std::vector<double> x, w, b, v;
};

}  // namespace

TEST_CASE("a part that is computed again gives the bits of one that is kept") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor keys = ops::from_host(std::vector<std::int64_t>{3, 1, 4, 1, 5}, {5}, *backend);
  const auto gradients = [&](bool recompute, bool x_wanted) {
    const Variable x = drawn({5, 8}, 1, *backend, x_wanted), w = drawn({8, 8}, 2, *backend),
                   b = drawn({8}, 3, *backend), v = drawn({5, 8}, 4, *backend);
    const auto f = [&](const Variable& in) { return part(in, w, b, keys); };
    const auto layer = [&](const Variable& in) { return recompute ? recomputed(in, {w, b}, f) : f(in); };
    const Variable y = layer(layer(x));  // both use the same weights
    backward(sum(mul(mul(y, v), v)));
    return Gradients{x_wanted ? ops::to_host<double>(x.grad()) : std::vector<double>{}, ops::to_host<double>(w.grad()),
                     ops::to_host<double>(b.grad()), ops::to_host<double>(v.grad())};
  };
  for (const bool x_wanted : {true, false}) {
    const Gradients kept = gradients(false, x_wanted), again = gradients(true, x_wanted);
    CHECK(again.x == kept.x);
    CHECK(again.w == kept.w);
    CHECK(again.b == kept.b);
    CHECK(again.v == kept.v);
  }
}

TEST_CASE("the gradients of a part that is computed again are those of its differences") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor keys = ops::from_host(std::vector<std::int64_t>{3, 1, 4}, {3}, *backend);
  const auto f = [&](const std::vector<Variable>& inputs) {
    return recomputed(inputs[0], {inputs[1], inputs[2]},
                      [=](const Variable& x) { return part(x, inputs[1], inputs[2], keys); });
  };
  const std::vector<Tensor> inputs{drawn({3, 4}, 1, *backend).value(), drawn({4, 4}, 2, *backend).value(),
                                   drawn({4}, 3, *backend).value()};
  for (const WrongEntry& wrong : check_gradient(f, inputs)) FAIL_CHECK(wrong.text());
}

TEST_CASE("the graph keeps of a part that is computed again its input and its result alone") {
  const auto backend = open_cpu({.threads = 1});
  const auto bytes_of_graph = [&](bool recompute) {
    const Variable x = drawn({64, 64}, 1, *backend);
    const std::size_t before = backend->memory().in_use;
    const auto f = [](Variable in) {
      for (int i = 0; i < 10; ++i) in = mul(in, in);
      return in;
    };
    const Variable y = recompute ? recomputed(x, {}, f) : f(x);
    return backend->memory().in_use - before;
  };
  CHECK(bytes_of_graph(false) == 10 * 64 * 64 * 8);
  CHECK(bytes_of_graph(true) == 64 * 64 * 8);
}

TEST_CASE("a leaf is done after the part that uses it was computed again") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = drawn({4}, 1, *backend), w = drawn({4}, 2, *backend), last = drawn({4}, 3, *backend);
  const Variable y = recomputed(x, {w}, [&](const Variable& in) { return mul(in, w); });
  std::vector<const GradientSlot*> done;
  backward(sum(mul(y, last)), {}, [&](const GradientSlot& slot) {
    CHECK(slot.gradient);
    done.push_back(&slot);
  });
  CHECK(done == std::vector<const GradientSlot*>{last.slot().get(), w.slot().get(), x.slot().get()});
}

TEST_CASE("the parameters of a part that is computed again are leaves") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x = drawn({4}, 1, *backend), w = drawn({4}, 2, *backend);
  const Variable twice = add(w, w);
  CHECK_THROWS_WITH_AS(recomputed(x, {twice}, [&](const Variable& in) { return mul(in, twice); }),
                       doctest::Contains("expected parameters that are leaves, got the result of \"add\""), Error);
  const NoGrad no_graph;
  const Variable constant = add(w, w);
  CHECK(recomputed(x, {constant}, [&](const Variable& in) { return mul(in, constant); }).shape() == Shape{4});
}

TEST_CASE("every second part is computed again, the first one included, and none beyond the scope") {
  const auto parts = [] {
    return std::vector<bool>{Recomputing::next_part(), Recomputing::next_part(), Recomputing::next_part()};
  };
  CHECK(parts() == std::vector<bool>{false, false, false});
  {
    const Recomputing all(1);
    CHECK(parts() == std::vector<bool>{true, true, true});
    {
      const Recomputing second(2);
      CHECK(parts() == std::vector<bool>{true, false, true});
      const NoGrad no_graph;
      CHECK(parts() == std::vector<bool>{false, false, false});
    }
    CHECK(parts() == std::vector<bool>{true, true, true});
  }
  CHECK(parts() == std::vector<bool>{false, false, false});
  const Recomputing third(3);
  CHECK(Recomputing::next_part());
  {
    const Recomputing all(1);
    CHECK(parts() == std::vector<bool>{true, true, true});
  }
  CHECK(parts() == std::vector<bool>{false, false, true});  // the outer scope goes on with its own second part
}
