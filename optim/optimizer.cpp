// The host's half of an optimizer step: which numbers the kernel gets, and what came of it. The formulas of the kernel
// are in tensor/update.h.
#include "optim/optimizer.h"

#include "tensor/run.h"

namespace bertrand::optim {
namespace {

bool decays(const std::string& name) {
  return name.find("bias") == std::string::npos && name.find("LayerNorm") == std::string::npos;
}

/// SGD in AdamW's numbers: m = g, v = 0, and the step is g / (√0 + 1).
Options as_adamw(Options options) {
  if (options.method != Method::sgd) return options;
  options.beta1 = 0;
  options.beta2 = 1;
  options.epsilon = 1;
  return options;
}

}  // namespace

Optimizer::Optimizer(nn::ParameterSet& parameters, const Options& options)
    : parameters_(parameters),
      options_(as_adamw(options)),
      loss_scale_(parameters.values().dtype(), parameters.backend()),
      scale_read_(loss_scale_.read().scale) {
  for (const auto& segment : parameters.segments()) {
    if (segment.rate == 0) continue;
    const double weight_decay = decays(segment.name) ? options.weight_decay : 0;
    segments_.push_back(
        {.begin = segment.begin,
         .count = segment.count(),
         .weight_decay = weight_decay,
         .trust_ratio = options.method == Method::lamb || (options.method == Method::lamb_decayed && weight_decay != 0),
         .rate = segment.rate});
  }
  const Tensor masters = parameters.trained(parameters.masters());
  m_ = ops::full(masters.shape(), 0, masters.dtype(), masters.backend());
  v_ = ops::full(masters.shape(), 0, masters.dtype(), masters.backend());
}

Tensor Optimizer::update(double learning_rate, const Tensor& gradients, const Tensor& losses) {
  const UpdateTensors tensors{parameters_.trained(parameters_.masters()), parameters_.trained(parameters_.values()),
                              gradients, m_, v_};
  const Tensor norm = ops::norm(gradients);
  if (losses) ops::add_into(ops::sum(losses, 0), norm);  // adds 0, or NaN if a loss is not finite
  const Update update{.learning_rate = learning_rate,
                      .beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .epsilon = options_.epsilon,
                      .bias_correction = options_.method != Method::adamw_google && options_.method != Method::sgd,
                      .step = ++steps_,
                      .clip_norm = options_.clip_norm,
                      .gradient_norm = norm,
                      .loss_scale = loss_scale_.scaling()};
  {
    const double bytes = 7.0 * static_cast<double>(tensors.masters.bytes());  // reads 4, writes 3
    run(gradients.backend(), "update", {.bytes = bytes}, [&](Kernels& k) { k.update(tensors, update, segments_); });
    tensors.values.count_write();  // a graph keeps nothing else
  }
  Tensor numbers({4}, DType::f64, gradients.backend());
  ops::copy_into(norm, numbers.rows(0, 1));
  ops::copy_into(loss_scale_.scaling().state, numbers.rows(1, 4));
  return numbers;
}

Optimizer::Report Optimizer::read(std::span<const double, 4> numbers) {
  Report report{.gradient_norm = numbers[0] / scale_read_, .loss_scale = LossScale::state_of(&numbers[1])};
  report.ended = loss_scale_.has_ended(report.loss_scale);
  scale_read_ = report.loss_scale.scale;
  return report;
}

void Optimizer::refuse(const Report& report, const Tensor& gradients) const {
  const std::string name = parameters_.first_non_finite(gradients);
  fail(Failure::numerics,
       "gradient: expected finite numbers, got a norm of {}{}{}{}; hint: a lower learning rate or a longer warm-up",
       report.gradient_norm, loss_scale_.dynamic() ? " down to a loss scale of 2^-10" : "",
       name.empty() ? "" : ", first not finite in ", name);
}

double Optimizer::step(double learning_rate, const Tensor& gradients) {
  const std::vector<double> numbers = ops::to_host<double>(update(learning_rate, gradients));
  const Report report = read(std::span<const double, 4>(numbers));
  if (report.ended) refuse(report, gradients);
  return report.gradient_norm;
}

void Optimizer::resume(std::int64_t steps_done, const LossScale::State& loss_scale) {
  steps_ = steps_done;
  loss_scale_.resume(loss_scale);
  scale_read_ = loss_scale_.read().scale;
}

}  // namespace bertrand::optim
