#include "autograd/recompute.h"

#include "autograd/engine.h"
#include "autograd/wanted.h"

namespace bertrand {
namespace {

thread_local int recompute_every = 0, part_number = 0;

}  // namespace

Variable recomputed(const Variable& x, const std::vector<Variable>& parameters,
                    std::function<Variable(const Variable& x)> f) {
  for (const Variable& parameter : parameters)
    if (parameter.requires_grad() && parameter.slot()->node)
      fail(Failure::bug, "recomputed: expected parameters that are leaves, got the result of \"{}\"; {}",
           parameter.slot()->node->op, "hint: compute it inside of f");
  Tensor y;
  {
    const NoGrad guard;
    y = f(x).value();
  }
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  return record("recomputed", y, inputs, [f = std::move(f), x = x.value()](const Tensor& dy, Wanted& want) {
    // The part is a graph of its own, from a leaf that holds x. The parameters are leaves of both graphs.
    const Variable leaf(x, want[0]);
    Variable again;
    {
      const Recording guard;
      again = f(leaf);
    }
    backward_from(again, dy);
    Grads grads{leaf.grad()};
    for (std::size_t i = 1; i < want.size(); ++i) grads.push_back(want[i] ? want.gathered(i) : Tensor{});
    return grads;
  });
}

Recomputing::Recomputing(int every)
    : previous_every_(std::exchange(recompute_every, every)), previous_part_(std::exchange(part_number, 0)) {}
Recomputing::~Recomputing() {
  recompute_every = previous_every_;
  part_number = previous_part_;
}
bool Recomputing::next_part() {
  return recompute_every > 0 && !NoGrad::active() && part_number++ % recompute_every == 0;
}

}  // namespace bertrand
