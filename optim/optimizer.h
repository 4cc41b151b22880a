// An Optimizer moves the parameters of a ParameterSet against their gradient.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/parameter_set.h"
#include "optim/loss_scale.h"

namespace bertrand::optim {

/// In the order of increasing complexity: each is the next one with numbers that switch a part of it off. With the
/// clipped gradient g, the weights w and the learning rate α:
///   SGD      w ← w − α (g + λ w)
///   AdamW    w ← w − α (m̂ / (√v̂ + ε) + λ w),  where m ← β1 m + (1 − β1) g and v ← β2 v + (1 − β2) g²,
///            m̂ = m / (1 − β1ᵗ), v̂ = v / (1 − β2ᵗ): SGD is AdamW with β1 = 0, β2 = 1, ε = 1 and without the
///            corrections of m̂ and v̂, so that v̂ stays 0
///   LAMB     u = m̂ / (√v̂ + ε) + λ w,  w ← w − α ‖w‖ / ‖u‖ u: AdamW is LAMB with every ratio ‖w‖ / ‖u‖ taken as 1
/// One kernel computes all of them: tensor/cpu/update.cpp, tensor/cuda/update.cu.
enum class Method {
  sgd,           ///< plain stochastic gradient descent: beta1, beta2 and epsilon of the options are not used
  adamw,         ///< decoupled decay (Loshchilov and Hutter 2019), times α as in PyTorch; bias correction
  adamw_google,  ///< google-research/bert: AdamW with m̂ = m and v̂ = v, no bias correction
  lamb,          ///< You et al. 2020; the trust ratio on every variable (NVIDIA's TensorFlow trainer)
  lamb_decayed   ///< the trust ratio only on variables that decay, on none if λ is 0 (NVIDIA's PyTorch trainer)
};

struct Options {
  Method method = Method::adamw_google;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6;
  double weight_decay = 0.01;  ///< λ; 0 for variables whose name contains "bias" or "LayerNorm"
  double clip_norm = 1.0;      ///< the largest norm that all gradients together may have; 0 is off
};

/// Owns the moments m and v: flat tensors of the places of the parameters that are trained, of the masters' type. A
/// parameter moves by its share of the learning rate (ParameterSet::Segment::rate); a frozen one has no moments. The
/// parameters must outlive it.
class Optimizer {
 public:
  Optimizer(nn::ParameterSet& parameters, const Options& options);

  /// One step with the gradients of the parameters, clipped by their global norm. Waits for the device. Returns the
  /// norm before clipping. Throws Error(Failure::numerics) if it is not finite: then nothing has moved (in f16 the step
  /// is skipped and the loss scale halved, as often as that can help).
  double step(double learning_rate) { return step(learning_rate, parameters_.gradients()); }
  /// The same with other gradients: flat, of the values' or the masters' type.
  double step(double learning_rate, const Tensor& gradients);

  /// step() in two halves, so that the host need not wait: update() asks the device for the step, and read() tells what
  /// came of it. `losses`: f64, or empty. If the gradients' norm or a loss is not finite nothing moves. In f16 such a
  /// step is skipped: it counts as a step, but not for the bias correction. In other types, or if the loss scale cannot
  /// fall further, no later step moves anything either. Returns the numbers for read(): f64 [4] on the device.
  Tensor update(double learning_rate, const Tensor& gradients, const Tensor& losses = {});

  struct Report {
    double gradient_norm = 0;     ///< before clipping, of the loss without its scale
    LossScale::State loss_scale;  ///< after the step
    bool ended = false;           ///< whether this step, or one before, has ended the training
  };
  /// What came of a step, from what update() returned, on the host. To be called once for every step, in their order.
  Report read(std::span<const double, 4> numbers);
  /// Throws Error(Failure::numerics), which names the first parameter whose gradient is not finite.
  [[noreturn]] void refuse(const Report& report, const Tensor& gradients) const;

  std::int64_t steps_done() const { return steps_; }   ///< skipped ones too
  const Tensor& first_moments() const { return m_; }   ///< flat, as ParameterSet::gradients()
  const Tensor& second_moments() const { return v_; }  ///< flat
  /// What the loss must be multiplied by before backward.
  const LossScale& loss_scale() const { return loss_scale_; }
  /// After the moments were loaded from a checkpoint.
  void resume(std::int64_t steps_done, const LossScale::State& loss_scale = {});

 private:
  nn::ParameterSet& parameters_;
  Options options_;
  std::vector<UpdateSegment> segments_;
  Tensor m_, v_;
  LossScale loss_scale_;
  double scale_read_;  // the loss scale after the last step that was read: the next gradients have it
  std::int64_t steps_ = 0;
};

}  // namespace bertrand::optim
