// Attention. With the probabilities P = softmax(q kᵀ / √d) and y = P v of one head of one sequence:
//   dv = Pᵀ dy,  dP = dy vᵀ,  dS = P ∘ (dP − Σ dP ∘ P),  dq = dS k / √d,  dk = dSᵀ q / √d
#include "autograd/ops.h"
#include "autograd/wanted.h"

namespace bertrand {

Variable attention(const Variable& qkv, const Attention& options) {
  const ops::Attended saved = ops::attention(qkv.value(), options);
  return record("attention", saved.context, {qkv}, [qkv = qkv.value(), options, saved](const Tensor& dy, Wanted&) {
    return Grads{ops::attention_backward(qkv, options, saved, dy)};  // computed head by head: tensor/cpu/attention.cpp
  });
}

}  // namespace bertrand
