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
  const Tensor& values = parameters.values();
  m_ = ops::full(values.shape(), 0, values.dtype(), values.backend());
  v_ = ops::full(values.shape(), 0, values.dtype(), values.backend());
}

double Optimizer::step(double learning_rate) {
  const Tensor norm = ops::norm(parameters_.gradients());
  const double gradient_norm = ops::item(norm);
  if (!std::isfinite(gradient_norm)) {
    const std::string name = parameters_.first_non_finite_gradient();
    fail(Failure::numerics, "gradient: expected finite numbers, got a norm of {}{}{}; hint: a lower learning rate or a longer warm-up", gradient_norm,
         name.empty() ? "" : ", first not finite in ", name);
  }
  const Update update{.learning_rate = learning_rate,
                      .beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .epsilon = options_.epsilon,
                      .bias_correction = options_.method != Method::adamw_google,
                      .step = steps_ + 1,
                      .clip_norm = options_.clip_norm,
                      .gradient_norm = norm};
  const Tensor& values = parameters_.values();
  const Span span(values.backend(), "update", {.bytes = 7.0 * static_cast<double>(values.bytes())});  // reads 4, writes 3
  values.backend().update({values, values, parameters_.gradients(), m_, v_}, update, segments_);
  ++steps_;
  return gradient_norm;
}

}  // namespace bertrand::optim
