#include "optim/optimizer.h"

#include <cmath>

#include "tensor/profiler.h"

namespace bertrand::optim {
namespace {

bool decays(const std::string& name) { return name.find("bias") == std::string::npos && name.find("LayerNorm") == std::string::npos; }

}  // namespace

Optimizer::Optimizer(nn::ParameterSet& parameters, const Options& options) : parameters_(parameters), options_(options) {
  for (const auto& segment : parameters.segments()) {
    const bool decayed = decays(segment.name);
    segments_.push_back({.begin = segment.begin,
                         .count = segment.count(),
                         .weight_decay = decayed ? options.weight_decay : 0,
                         .trust_ratio = options.method == Method::lamb || (options.method == Method::lamb_decayed && decayed)});
  }
  const Tensor& masters = parameters.masters();
  m_ = ops::full(masters.shape(), 0, masters.dtype(), masters.backend());
  v_ = ops::full(masters.shape(), 0, masters.dtype(), masters.backend());
  if (parameters.values().dtype() == DType::f16) loss_scale_ = LossScale(masters.backend());
}

double Optimizer::step(double learning_rate, const Tensor& gradients) {
  const UpdateTensors tensors{parameters_.masters(), parameters_.values(), gradients, m_, v_};
  const double scale = loss_scale_.read().scale;  // of these gradients
  const Update update{.learning_rate = learning_rate,
                      .beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .epsilon = options_.epsilon,
                      .bias_correction = options_.method != Method::adamw_google,
                      .step = steps_ + 1 - skipped_,
                      .clip_norm = options_.clip_norm,
                      .gradient_norm = ops::norm(gradients),
                      .loss_scale = loss_scale_.scaling()};
  {
    const double bytes = 7.0 * static_cast<double>(tensors.masters.bytes());  // reads 4, writes 3
    const Span span(gradients.backend(), "update", {.bytes = bytes});
    gradients.backend().update(tensors, update, segments_);
  }
  const double norm = ops::item(update.gradient_norm) / scale;
  if (!std::isfinite(norm)) check_skipped(norm, gradients);
  ++steps_;
  return norm;
}

void Optimizer::check_skipped(double norm, const Tensor& gradients) const {
  if (loss_scale_ && loss_scale_.read().scale >= LossScale::kLeast) return;
  const std::string name = parameters_.first_non_finite(gradients);
  fail(Failure::numerics, "gradient: expected finite numbers, got a norm of {}{}{}{}; hint: a lower learning rate or a longer warm-up", norm,
       loss_scale_ ? " down to a loss scale of 2^-10" : "", name.empty() ? "" : ", first not finite in ", name);
}

void Optimizer::resume(std::int64_t steps_done, const LossScale::State& loss_scale) {
  steps_ = steps_done;
  if (loss_scale_) loss_scale_.resume(loss_scale);
  else skipped_ = loss_scale.skipped_steps;
}

}  // namespace bertrand::optim
