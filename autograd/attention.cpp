#include "autograd/ops.h"
#include "autograd/wanted.h"

namespace bertrand {

Variable attention(const Variable& qkv, const Attention& options) {
  const ops::Attended saved = ops::attention(qkv.value(), options);
  return record("attention", saved.context, {qkv}, [qkv = qkv.value(), options, saved](const Tensor& dy, Wanted&) {
    return Grads{ops::attention_backward(qkv, options, saved, dy)};  // formulas stand beside the kernel
  });
}

}  // namespace bertrand
