// Softmax and layer normalisation.
#include "autograd/ops.h"
#include "autograd/wanted.h"

namespace bertrand {

Variable softmax(const Variable& x) {
  Tensor y = ops::softmax(x.value());
  return record("softmax", y, {x}, [y](const Tensor& dy, Wanted&) {
    return Grads{ops::softmax_backward(y, dy)};  // dx = y ∘ (dy − Σ y ∘ dy)
  });
}

// With x̂ = (sum − mean) / σ and dx̂ = dy ∘ γ: dsum = (dx̂ − mean(dx̂) − x̂ ∘ mean(dx̂ ∘ x̂)) / σ, dγ = Σ dy ∘ x̂, dβ = Σ dy.

Variable layer_norm(const Variable& x, const Variable& gamma, const Variable& beta, double epsilon) {
  const LayerNorm options{.gamma = gamma.value(), .beta = beta.value(), .epsilon = epsilon};
  const ops::Normalized saved = ops::layer_norm(x.value(), {}, options);
  return record("layer_norm", saved.y, {x, gamma, beta},
                [saved = ops::Normalized{{}, saved.sum, saved.statistics}, options](const Tensor& dy, Wanted& want) {
                  const ops::NormGradients d =
                      ops::layer_norm_backward(saved, options, dy, want.fresh_buffer(1), want.fresh_buffer(2));
                  return Grads{d.dx, d.dgamma, d.dbeta};
                });
}

Variable dropout_add_layer_norm(const Variable& x, const Variable& residual, const Variable& gamma,
                                const Variable& beta, const NormOptions& norm) {
  const LayerNorm options{
      .gamma = gamma.value(), .beta = beta.value(), .epsilon = norm.epsilon, .dropout = norm.dropout};
  const ops::Normalized saved = ops::layer_norm(x.value(), residual.value(), options);
  return record("dropout_add_layer_norm", saved.y, {x, residual, gamma, beta},
                [saved = ops::Normalized{{}, saved.sum, saved.statistics}, options](const Tensor& dy, Wanted& want) {
                  const ops::NormGradients d =
                      ops::layer_norm_backward(saved, options, dy, want.fresh_buffer(2), want.fresh_buffer(3));
                  return Grads{d.dx, d.dresidual, d.dgamma, d.dbeta};  // dx = dsum ∘ mask / keep, dresidual = dsum
                });
}

}  // namespace bertrand
