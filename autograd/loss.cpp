// Losses: one number, divided by a count that is known before the pass, so that micro-batches add up.
#include "autograd/ops.h"
#include "autograd/wanted.h"

namespace bertrand {

Variable softmax_cross_entropy(const Variable& logits, const Tensor& labels, double denominator) {
  const ops::CrossEntropy saved = ops::cross_entropy(logits.value(), labels, denominator);
  return record(
      "softmax_cross_entropy", saved.loss, {logits},
      [logits = logits.value(), labels, denominator, log_sum = saved.log_sum](const Tensor& dy, Wanted&) mutable {
        // dlogits = (softmax(logits) − one-hot(label)) · dy / denominator; 0 in ignored rows. The closure runs
        // once, so that the op may overwrite the logits if nothing else holds them.
        return Grads{ops::cross_entropy_backward(std::move(logits), labels, denominator, log_sum, dy)};
      });
}

namespace {
Variable point_loss(const char* name, PointLoss loss, const Variable& x, const Tensor& target, double denominator) {
  return record(name, ops::point_loss(loss, x.value(), target, denominator), {x},
                [loss, x = x.value(), target, denominator](const Tensor& dy, Wanted&) {
                  return Grads{ops::point_loss_backward(loss, x, target, denominator, dy)};
                });
}
}  // namespace

Variable mse(const Variable& x, const Tensor& target, double denominator) {
  return point_loss("mse", PointLoss::squared_error, x, target, denominator);  // dx = 2 (x − target) dy / denominator
}
Variable binary_cross_entropy_with_logits(const Variable& x, const Tensor& target, double denominator) {
  return point_loss("binary_cross_entropy_with_logits", PointLoss::binary_cross_entropy_with_logits, x, target,
                    denominator);  // dx = (sigmoid(x) − target) dy / denominator
}

}  // namespace bertrand
