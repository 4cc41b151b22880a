// An op of your own, outside the library: σ(x) = 1 / (1 + e⁻ˣ) with its own derivative, and the check that it is right.
//
// What to see: an op computes its result from tensors, and record() takes a closure that turns the gradient of the
// result into those of the inputs. The engine needs nothing else. check_gradient() compares with differences.
#include <cstdio>
#include <vector>

#include "autograd/gradient_check.h"
#include "autograd/wanted.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

Tensor ones_like(const Tensor& x) { return ops::full(x.shape(), 1, x.dtype(), x.backend()); }

/// σ(x) = ½ (1 + tanh(x / 2)), which cannot overflow.
Variable sigmoid(const Variable& x) {
  const Tensor t = ops::unary(Unary::tanh, ops::scale(x.value(), 0.5));
  const Tensor y = ops::scale(ops::binary(Binary::add, t, ones_like(t)), 0.5);
  return record("sigmoid", y, {x}, [y](const Tensor& dy, Wanted&) {
    const Tensor rest = ops::binary(Binary::sub, ones_like(y), y);
    return Grads{ops::binary(Binary::mul, dy, ops::binary(Binary::mul, y, rest))};  // dx = dy ∘ y (1 − y)
  });
}

/// The same with a mistake: the slope is taken to be y.
Variable wrong_sigmoid(const Variable& x) {
  const Tensor y = sigmoid(x).value();
  return record("wrong_sigmoid", y, {x},
                [y](const Tensor& dy, Wanted&) { return Grads{ops::binary(Binary::mul, dy, y)}; });
}

std::size_t wrong_entries(const char* name, Variable (*op)(const Variable&), const Tensor& x) {
  const std::vector<WrongEntry> wrong = check_gradient([&](const std::vector<Variable>& in) { return op(in[0]); }, {x});
  std::printf("%s: %zu of %lld entries are wrong\n", name, wrong.size(), static_cast<long long>(x.elements()));
  for (const WrongEntry& entry : wrong) std::printf("  %s\n", entry.text().c_str());
  return wrong.size();
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  const Tensor x = ops::from_host(std::vector<double>{-30, -1, 0, 2}, {4}, *backend);
  const std::size_t right = wrong_entries("sigmoid", sigmoid, x);
  return right == 0 && wrong_entries("wrong_sigmoid", wrong_sigmoid, x) == 3 ? 0 : 1;  // at −30 both slopes are 1e-13
}
